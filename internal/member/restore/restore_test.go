package restore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/authpb"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/restore"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
	"github.com/quorate/quorate/internal/storage/wal"
)

// history is a small history with all that matters: a key from before the compaction, a deletion and a new beginning, two
// changes at one revision, a lease with a key and one without, and a key whose lease is gone.
var history = []revision{
	{2, []kv.Event{put("old", "1", 2, 2, 1, 0)}},
	{3, []kv.Event{put("a", "1", 3, 3, 1, 0)}},
	{4, []kv.Event{put("a", "2", 3, 4, 2, 7)}},
	{5, []kv.Event{{Kind: kv.EventDelete, KV: kv.KeyValue{Key: []byte("a"), ModRevision: 5}}, put("b", "1", 5, 5, 1, 9)}},
	{6, []kv.Event{put("a", "3", 6, 6, 1, 7)}},
}

type revision struct {
	rev    kv.Revision
	events []kv.Event
}

const compacted = 3

func put(key, value string, create, mod kv.Revision, version int64, lease kv.LeaseID) kv.Event {
	return kv.Event{KV: kv.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: create, ModRevision: mod,
		Version: version, Lease: lease}}
}

// users are root and alice, whose role may write a..c.
func users(t *testing.T) *auth.State {
	t.Helper()
	state := auth.New()
	for _, c := range []auth.Change{
		{Kind: auth.UserAdd, User: "root", Hash: []byte("hash")}, {Kind: auth.UserGrantRole, User: "root", Role: "root"},
		{Kind: auth.RoleAdd, Role: "some"}, {Kind: auth.UserAdd, User: "alice", Hash: []byte("other")},
		{Kind: auth.GrantPermission, Role: "some", Permission: auth.Permission{
			Access: auth.ReadWrite, Key: []byte("a"), End: []byte("c")}},
		{Kind: auth.UserGrantRole, User: "alice", Role: "some"}, {Kind: auth.Enable, Secret: make([]byte, 32)},
	} {
		next, _, err := state.Next(&c)
		if err != nil {
			t.Fatal(err)
		}
		state = next
	}
	return state
}

// backup writes a file; change may add to it.
func backup(t *testing.T, change func(*etcdbackup.Writer) error) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s.db")
	w, err := etcdbackup.Create(context.Background(), name, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range history {
		err = errors.Join(err, w.Change(history[i].rev, history[i].events))
	}
	err = errors.Join(err, w.Lease(7, 60), w.Lease(8, 90), w.Users(users(t)), w.Alarm(kv.Alarm{Member: 5, Kind: kv.AlarmNoSpace}),
		w.Meta(&etcdbackup.Meta{Index: 70, Term: 3, Compacted: compacted, Storage: "3.7.0", Cluster: "3.7.1"}))
	if change != nil {
		err = errors.Join(err, change(w))
	}
	if err = errors.Join(err, w.Finish(), w.Close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if err := os.WriteFile(name, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func request(file string, self consensus.MemberID) *restore.Request {
	members := []consensus.Member{{ID: 1, Name: "m1"}, {ID: 2, Name: "m2"}}
	return &restore.Request{File: file, Name: "m1", Self: self, Members: members}
}

// start does what the first start does once the members have met.
func start(t *testing.T, options datadir.Options, self consensus.MemberID) *datadir.Data {
	t.Helper()
	restored, err := datadir.ReadRestored(options)
	if err != nil || restored == nil {
		t.Fatalf("got %v, %v; want a restored directory", restored, err)
	}
	config := consensus.Config{Voters: []consensus.MemberID{1, 2}, Members: restored.Members}
	identity := wal.Identity{Cluster: restored.Cluster, Member: self, Storage: wal.StorageID{byte(self)}}
	if err := datadir.Create(options, identity, config); err != nil {
		t.Fatal(err)
	}
	return datatest.Open(t, options)
}

// Ensure that more leases than there is memory for are refused before anything is written, by a sentence that says how much is
// needed.
func TestRun_tooLittleMemory(t *testing.T) {
	file := backup(t, nil) // with two leases
	less := datatest.Options()
	less.Apply.MostLeases = 2*lease.EachBytes - 1
	_, err := restore.Run(context.Background(), less, request(file, 1))
	if err == nil || !strings.Contains(err.Error(), "--memory=") || !strings.Contains(err.Error(), "the leases (2) take") {
		t.Errorf("too many leases: %v", err)
	}
	if _, err := less.FS.Stat(less.Dir + ".partial"); err == nil {
		t.Error("something was written")
	}
	options := datatest.Options()
	options.Apply.MostLeases = 2 * lease.EachBytes
	if _, err := restore.Run(context.Background(), options, request(file, 1)); err != nil {
		t.Errorf("with memory for all: %v", err)
	}
}

// Ensure that two members begin with the same: all history since the compaction, leases with their keys, users, and no alarm.
func TestRun(t *testing.T) {
	file := backup(t, nil)
	var hashes []uint32
	var chains []uint64
	for self := consensus.MemberID(1); self <= 2; self++ {
		options := datatest.Options()
		result, err := restore.Run(t.Context(), options, request(file, self))
		if err != nil {
			t.Fatal(err)
		}
		if result.Revision != 6 || result.Compacted != compacted || result.Keys != 3 || result.Leases != 2 || result.Users != 2 ||
			result.Roles != 1 || !result.AuthEnabled || result.Alarms != 1 {
			t.Errorf("got %+v", result)
		}
		data := start(t, options, self)
		store := data.Machine.Store()
		changes, _, err := store.EventsSince(mvcc.EventQuery{From: compacted})
		if err != nil || len(changes) != 4 {
			t.Fatalf("got %d changes, %v", len(changes), err)
		}
		for i, change := range changes {
			if diff := cmp.Diff(history[i+1].events, change.Events); diff != "" || change.Revision != history[i+1].rev {
				t.Errorf("revision %d: %s", change.Revision, diff)
			}
		}
		if _, _, err := store.EventsSince(mvcc.EventQuery{From: compacted - 1}); !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("history from before the compaction: %v", err)
		}
		old, err := store.Get([]byte("old"))
		if err != nil || old == nil || string(old.Value) != "1" || old.ModRevision != 2 {
			t.Errorf("a key from before the compaction: %v, %v", old, err)
		}
		leases := data.Machine.Leases()
		var keys []string
		err = data.Machine.VisitLeaseKeys(7, func(key []byte) bool { keys = append(keys, string(key)); return true })
		if n, size := leases.KeysSize(7); err != nil || !leases.Exists(7) || cmp.Diff(keys, []string{"a"}) != "" || n != 1 || size != 1 {
			t.Errorf("lease 7 has %q, %d keys of %d bytes, %v", keys, n, size, err)
		}
		if leases.Len() != 2 || leases.Exists(9) || len(data.Machine.Alarms()) != 0 {
			t.Errorf("%d leases, alarms %v", leases.Len(), data.Machine.Alarms())
		}
		if u := data.Machine.Users(); !u.Enabled() || !u.HasRole("alice", "some") || u.Secret() != nil {
			t.Errorf("users: enabled %v, %v", u.Enabled(), u.Users())
		}
		hash, _, _, err := store.HashKV(0)
		if err != nil {
			t.Fatal(err)
		}
		hashes, chains = append(hashes, hash), append(chains, data.Machine.Chain().Sum)
		if data.Restored.Base.Position != (consensus.Position{Index: 1, Term: 1}) || data.Restored.Revision != 6 {
			t.Errorf("the log begins with %v, revision %d", data.Restored.Base.Position, data.Restored.Revision)
		}
		for done := false; !done; { // what the compaction left in the file is deleted here
			if done, err = store.CompactStep(10); err != nil {
				t.Fatal(err)
			}
		}
		datatest.Close(t, data)
		if again, err := datadir.ReadRestored(options); again != nil || err != nil {
			t.Errorf("after the first start: %v, %v", again, err)
		}
		datatest.Close(t, datatest.Open(t, options))
	}
	if hashes[0] != hashes[1] || chains[0] != chains[1] {
		t.Errorf("members differ: hashes %x, chains %x", hashes, chains)
	}
}

// run restores a file, and checks that the store begins at the revision of the result.
func run(t *testing.T, file string, bump uint64) *restore.Result {
	t.Helper()
	options := datatest.Options()
	r := request(file, 1)
	r.BumpRevision = bump
	result, err := restore.Run(t.Context(), options, r)
	if err != nil {
		t.Fatal(err)
	}
	data := start(t, options, 1)
	defer datatest.Close(t, data)
	if got := data.Machine.Store().Revision(); got != result.Revision {
		t.Errorf("revision %d, want %d", got, result.Revision)
	}
	return result
}

// Ensure that the cluster's id tells contents apart, and that the raised revision is above all history.
func TestRun_otherContents(t *testing.T) {
	plain := backup(t, nil)
	more := backup(t, func(w *etcdbackup.Writer) error { return w.Lease(11, 5) })
	first, same, other, bumped := run(t, plain, 0), run(t, plain, 0), run(t, more, 0), run(t, plain, 1000)
	if first.Cluster != same.Cluster || first.Cluster == other.Cluster || first.Cluster == bumped.Cluster {
		t.Errorf("clusters %v, %v, %v, %v", first.Cluster, same.Cluster, other.Cluster, bumped.Cluster)
	}
	if bumped.Revision != 1006 || bumped.Compacted != 1006 {
		t.Errorf("raised to %d, compacted at %d", bumped.Revision, bumped.Compacted)
	}
	large := request(plain, 1)
	large.BumpRevision = 1 << 62
	if _, err := restore.Run(t.Context(), datatest.Options(), large); err == nil {
		t.Error("a revision at the end of the numbers was taken")
	}
}

// Ensure that a file which contradicts itself is refused, and leaves no directory that a member would start on.
func TestRun_damaged(t *testing.T) {
	for name, change := range map[string]func(*etcdbackup.Writer) error{
		"created later than modified": func(w *etcdbackup.Writer) error {
			return w.Change(7, []kv.Event{put("c", "1", 9, 7, 1, 0)})
		},
		"no key": func(w *etcdbackup.Writer) error { return w.Change(7, []kv.Event{put("", "1", 7, 7, 1, 0)}) },
		"no room for revisions": func(w *etcdbackup.Writer) error {
			last := kv.MaxRevision - 1
			return w.Change(last, []kv.Event{put("c", "1", last, last, 1, 0)})
		},
	} {
		options := datatest.Options()
		_, err := restore.Run(t.Context(), options, request(backup(t, change), 1))
		if !errors.Is(err, etcdbackup.ErrDamaged) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := options.FS.Stat(options.Dir); err == nil {
			t.Errorf("%s: left a directory", name)
		}
	}
}

// Ensure that a restore which was cut short is not taken for an empty directory, and that the next one begins anew.
func TestRun_interrupted(t *testing.T) {
	options := datatest.Options()
	if err := options.FS.MkdirAll(options.Dir+".partial/stores/1", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := datadir.FinishRestore(options); !errors.Is(err, datadir.ErrPartial) {
		t.Errorf("got %v", err)
	}
	if _, err := restore.Run(t.Context(), options, request(backup(t, nil), 1)); err != nil {
		t.Fatal(err)
	}
	if err := datadir.FinishRestore(options); err != nil {
		t.Error(err)
	}
	datatest.Close(t, start(t, options, 1))
}

// Ensure that a first start which was cut short after the log was made can be repeated.
func TestRun_firstStartInterrupted(t *testing.T) {
	options := datatest.Options()
	if _, err := restore.Run(t.Context(), options, request(backup(t, nil), 1)); err != nil {
		t.Fatal(err)
	}
	restored, err := datadir.ReadRestored(options)
	if err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, start(t, options, 1))
	// As after a crash before the boots file was written, and the record removed.
	if err := options.FS.Remove(options.FS.PathJoin(options.Dir, "boots")); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteRestored(options, restored); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, start(t, options, 1))
}

// Ensure that users are refused with which no cluster can go on.
func TestImported_refused(t *testing.T) {
	root := &authpb.User{Name: []byte("root"), Roles: []string{"root"}}
	for name, row := range map[string]struct {
		users []*authpb.User
		roles []*authpb.Role
	}{
		"no root":               {users: []*authpb.User{{Name: []byte("alice"), Roles: []string{"root"}}}},
		"root without its role": {users: []*authpb.User{{Name: []byte("root")}}},
		"a user twice":          {users: []*authpb.User{root, root}},
		"a role without a name": {users: []*authpb.User{root}, roles: []*authpb.Role{{}}},
		"an empty range": {users: []*authpb.User{root}, roles: []*authpb.Role{{Name: []byte("r"),
			KeyPermission: []*authpb.Permission{{Key: []byte("b"), RangeEnd: []byte("a")}}}}},
		"no permission at all": {users: []*authpb.User{root}, roles: []*authpb.Role{{Name: []byte("r"),
			KeyPermission: []*authpb.Permission{{PermType: 7, Key: []byte("b")}}}}},
		"too long": {users: []*authpb.User{root, {Name: bytes.Repeat([]byte("n"), 2000)}}},
	} {
		if _, err := auth.Imported(true, 5, row.users, row.roles); !errors.Is(err, auth.ErrCorruptRow) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Ensure that permissions of roles and lists of roles come in any order, as etcd writes them.
func TestImported_order(t *testing.T) {
	p := func(key, end string) *authpb.Permission {
		return &authpb.Permission{PermType: authpb.READ, Key: []byte(key), RangeEnd: []byte(end)}
	}
	rows, err := auth.Imported(true, 9,
		[]*authpb.User{{Name: []byte("root"), Password: []byte("h"), Roles: []string{"root", "a"}}},
		[]*authpb.Role{{Name: []byte("a"), KeyPermission: []*authpb.Permission{p("k", "m"), p("k", ""), p("a", "\x00")}}})
	if err != nil {
		t.Fatal(err)
	}
	state := auth.New()
	for i := range rows {
		if err := state.Load(rows[i].Key, rows[i].Value); err != nil {
			t.Fatal(err)
		}
	}
	if err := state.Loaded(); err != nil {
		t.Fatal(err)
	}
	role, _ := state.Role("a")
	var got strings.Builder
	for _, p := range role.Permissions {
		got.WriteString(string(p.Key) + "-" + string(p.End) + " ")
	}
	if got.String() != "a-\x00 k- k-m " || !state.HasRole("root", "root") || state.Revision() != 9 {
		t.Errorf("got %q, revision %d", got.String(), state.Revision())
	}
	next, _, err := state.Next(&auth.Change{Kind: auth.Enable, Secret: []byte("0123456789abcdef")})
	if err != nil || string(next.Secret()) != "0123456789abcdef" || !next.Enabled() {
		t.Errorf("a secret for a restored state: %q, %v", next.Secret(), err)
	}
	other := &auth.Change{Kind: auth.Enable, Secret: []byte("fedcba9876543210")}
	if again, _, err := next.Next(other); err != nil || again != next {
		t.Errorf("a second secret was taken: %v", err)
	}
}
