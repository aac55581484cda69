package etcdlog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/etcdlog"
	"github.com/quorate/quorate/internal/storage/etcdlog/logtest"
)

var (
	put     = &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: []byte("a"), Value: bytes.Repeat([]byte("v"), 2000)}}
	login   = &pb.InternalRaftRequest{Authenticate: &pb.InternalAuthenticateRequest{Name: "alice"}}
	revoked = &pb.InternalRaftRequest{LeaseRevoke: &pb.LeaseRevokeRequest{ID: 7}}
)

func read(t *testing.T, log *logtest.Log, after consensus.Index) (*etcdlog.Log, error) {
	t.Helper()
	dir := t.TempDir()
	log.Write(t, dir)
	return etcdlog.Read(t.Context(), dir, after)
}

// Ensure that exactly the entries count that the database lacks and that change something.
func TestRead_missing(t *testing.T) {
	for name, row := range map[string]struct {
		log   *logtest.Log
		after consensus.Index
		want  etcdlog.Log
	}{
		"all there":  {logtest.New(5, 9).Entry(1, 1, nil).Entry(2, 0, put).State(2), 2, etcdlog.Log{Last: 2}},
		"one write":  {logtest.New(5, 9).Entry(1, 0, put).Entry(2, 0, put).State(2), 1, etcdlog.Log{Last: 2, Missing: 1}},
		"not marked": {logtest.New(5, 9).Entry(1, 0, nil).State(1).Entry(2, 0, revoked), 1, etcdlog.Log{Last: 2, Missing: 1}},
		"nothing that counts": {logtest.New(5, 9).Entry(1, 0, put).Entry(2, 0, nil).Entry(3, 0, login).State(3), 1,
			etcdlog.Log{Last: 3}},
		"members": {logtest.New(5, 9).Entry(1, 0, put).Entry(2, 1, nil).State(2), 1, etcdlog.Log{Last: 2, Missing: 1}},
		"replaced by another leader": {logtest.New(5, 9).Entry(1, 0, put).Entry(2, 0, put).Entry(3, 0, put).Entry(2, 0, nil), 1,
			etcdlog.Log{Last: 2}},
		"files": {logtest.New(5, 9).Entry(1, 0, put).Cut().Entry(2, 0, put).Cut().Entry(3, 0, put), 1,
			etcdlog.Log{Last: 3, Missing: 2}},
		"a snapshot": {logtest.New(5, 9).Snapshot(8).State(8), 3, etcdlog.Log{Snapshot: 8}},
	} {
		row.want.Member, row.want.Cluster = 5, 9
		if got, err := read(t, row.log, row.after); err != nil || *got != row.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, row.want)
		}
	}
}

// Ensure that only the end of the last file may be incomplete.
func TestRead_damaged(t *testing.T) {
	dir := t.TempDir()
	logtest.New(5, 9).Entry(1, 0, put).Cut().Entry(2, 0, put).Entry(3, 0, put).Write(t, dir)
	first, last := filepath.Join(dir, "0000000000000000-0000000000000000.wal"), filepath.Join(dir, "0000000000000001-0000000000000001.wal")
	change := func(name string, do func([]byte) []byte) {
		t.Helper()
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, do(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(last, func(b []byte) []byte { return b[:len(b)-4096-1000] }) // the last record is cut
	if got, err := etcdlog.Read(t.Context(), dir, 1); err != nil || got.Last != 2 || got.Missing != 1 {
		t.Errorf("a torn end: got %+v, %v", got, err)
	}
	change(first, func(b []byte) []byte { b[1000] ^= 1; return b })
	if _, err := etcdlog.Read(t.Context(), dir, 1); !errors.Is(err, etcdlog.ErrDamaged) {
		t.Errorf("a changed byte: %v", err)
	}
	if err := os.Rename(last, filepath.Join(dir, "0000000000000002-0000000000000002.wal")); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdlog.Read(t.Context(), dir, 1); !errors.Is(err, etcdlog.ErrDamaged) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := etcdlog.Read(t.Context(), t.TempDir(), 1); !errors.Is(err, etcdlog.ErrNoLog) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := read(t, logtest.New(5, 9).Entry(1, 0, put).Entry(1<<63, 0, put), 1); !errors.Is(err, etcdlog.ErrDamaged) {
		t.Errorf("a gap: %v", err)
	}
}

// FuzzRead reads any file: an error at worst.
func FuzzRead(f *testing.F) {
	f.Add(logtest.New(5, 9).Entry(1, 0, login).Entry(2, 0, nil).State(2).Snapshot(2).Bytes(), uint64(1))
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x87"), uint64(0))
	f.Fuzz(func(t *testing.T, content []byte, after uint64) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "0000000000000000-0000000000000000.wal"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := etcdlog.Read(t.Context(), dir, consensus.Index(after))
		if err == nil && (log.Member == 0 || log.Missing < 0) {
			t.Errorf("took %+v", log)
		}
	})
}
