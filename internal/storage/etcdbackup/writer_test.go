package etcdbackup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// read gives the rows of one bucket, as "key=value", both quoted.
func read(t *testing.T, file, bucket string) (rows []string) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(bucket)).ForEach(func(k, v []byte) error {
			rows = append(rows, fmt.Sprintf("%q=%q", k, v))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// secured is a State with a user and a role, and authentication enabled.
func secured(t *testing.T) *auth.State {
	t.Helper()
	state := auth.New()
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("hash")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.RoleAdd, Role: "reader"},
		{Kind: auth.GrantPermission, Role: "reader",
			Permission: auth.Permission{Access: auth.ReadWrite, Key: []byte("a"), End: []byte("b")}},
		{Kind: auth.Enable, Secret: make([]byte, 32)},
	} {
		next, _, err := state.Next(&c)
		if err != nil {
			t.Fatal(err)
		}
		state = next
	}
	return state
}

func encoded(t *testing.T, p *mvccpb.KeyValue) []byte { return marshaled(t, p) }

func marshaled(t *testing.T, p proto.Message) []byte {
	t.Helper()
	value, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestWriter_rows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	w, err := etcdbackup.Create(context.Background(), file, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pair := kv.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 3, Version: 2, Lease: 7}
	err = errors.Join(
		w.Version(&pair),
		w.Version(&kv.KeyValue{Key: []byte("b"), ModRevision: 3}),
		w.Change(4, []kv.Event{{Kind: kv.EventPut, KV: pair}, {Kind: kv.EventDelete, KV: kv.KeyValue{Key: []byte("b"), ModRevision: 4}}}),
		w.Lease(7, 60),
		w.Alarm(kv.Alarm{Member: 5, Kind: kv.AlarmNoSpace}),
		w.Users(secured(t)),
		w.Member(&etcdbackup.Member{ID: 0xab, PeerURLs: []string{"http://p"}}),
		w.Removed(0xac),
		w.Meta(&etcdbackup.Meta{Index: 9, Term: 2, Voters: []consensus.MemberID{0xab}, Compacted: 3, Storage: "3.7.0",
			Cluster: "3.7.1"}),
		w.Finish(), w.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	full := encoded(t, &mvccpb.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 3, Version: 2, Lease: 7})
	bare := encoded(t, &mvccpb.KeyValue{Key: []byte("b")})
	second := encoded(t, &mvccpb.KeyValue{Key: []byte("b"), ModRevision: 3})
	zeros := "\x00\x00\x00\x00\x00\x00\x00"
	user := marshaled(t, &authpb.User{Name: []byte("root"), Password: []byte("hash"), Roles: []string{"root"},
		Options: &authpb.UserAddOptions{}})
	role := marshaled(t, &authpb.Role{Name: []byte("reader"), KeyPermission: []*authpb.Permission{
		{PermType: authpb.READWRITE, Key: []byte("a"), RangeEnd: []byte("b")},
	}})
	for bucket, want := range map[string][]string{
		"key": {
			fmt.Sprintf("%q=%q", zeros+"\x03_"+zeros+"\x00", full),
			fmt.Sprintf("%q=%q", zeros+"\x03_"+zeros+"\x01", second),
			fmt.Sprintf("%q=%q", zeros+"\x04_"+zeros+"\x00", full),
			fmt.Sprintf("%q=%q", zeros+"\x04_"+zeros+"\x01t", bare),
		},
		"lease":           {fmt.Sprintf("%q=%q", zeros+"\x07", "\x08\x07\x10\x3c")},
		"alarm":           {fmt.Sprintf("%q=%q", "\x08\x05\x10\x01", "")},
		"members":         {fmt.Sprintf("%q=%q", "ab", `{"id":171,"peerURLs":["http://p"]}`)},
		"members_removed": {fmt.Sprintf("%q=%q", "ac", "removed")},
		"cluster": {
			fmt.Sprintf("%q=%q", "clusterVersion", "3.7.1"),
			fmt.Sprintf("%q=%q", "downgrade", `{"target-version":"","enabled":false}`),
		},
		"meta": {
			fmt.Sprintf("%q=%q", "confState", `{"voters":[171],"auto_leave":false}`),
			fmt.Sprintf("%q=%q", "consistent_index", zeros+"\x09"),
			fmt.Sprintf("%q=%q", "finishedCompactRev", zeros+"\x03_"+zeros+"\x00"),
			fmt.Sprintf("%q=%q", "scheduledCompactRev", zeros+"\x03_"+zeros+"\x00"),
			fmt.Sprintf("%q=%q", "storageVersion", "3.7.0"),
			fmt.Sprintf("%q=%q", "term", zeros+"\x02"),
		},
		"auth":      {fmt.Sprintf("%q=%q", "authEnabled", "\x01"), fmt.Sprintf("%q=%q", "authRevision", zeros+"\x05")},
		"authUsers": {fmt.Sprintf("%q=%q", "root", user)},
		"authRoles": {fmt.Sprintf("%q=%q", "reader", role)},
	} {
		if got := read(t, file, bucket); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got  %v\nwant %v", bucket, got, want)
		}
	}
}

// Ensure that large files are written in several transactions, and that a writer whose context has ended stops at the next.
func TestWriter_Change_ended(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	w, err := etcdbackup.Create(ctx, filepath.Join(t.TempDir(), "db"), etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	large := []kv.Event{{KV: kv.KeyValue{Key: []byte("a"), Value: bytes.Repeat([]byte("v"), 9<<20)}}}
	for revision := kv.Revision(1); revision < 4; revision++ {
		if err := w.Change(revision, large); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if err := w.Change(4, large); err != nil {
		t.Fatalf("in the middle of a transaction: %v", err)
	}
	if err := w.Change(5, large); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
