package etcdbackup_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/etcdbackup"
)

// Ensure that the hash of a history is etcd's: the numbers are those of `etcdutl hashkv` 3.7.1 for this file. A compaction at 6
// left versions behind that it should have deleted, and a tombstone at 6 itself.
func TestFile_HashKV(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.db")
	w, err := etcdbackup.Create(context.Background(), name, etcdbackup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(rev kv.Revision, key, value string, created kv.Revision, version int64) {
		p := kv.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: created, ModRevision: rev, Version: version}
		err = errors.Join(err, w.Change(rev, []kv.Event{{KV: p}}))
	}
	remove := func(rev kv.Revision, key string) {
		gone := kv.KeyValue{Key: []byte(key), ModRevision: rev}
		err = errors.Join(err, w.Change(rev, []kv.Event{{Kind: kv.EventDelete, KV: gone}}))
	}
	put(2, "a", "1", 2, 1)
	put(3, "b", "1", 3, 1)
	put(4, "a", "2", 2, 2)
	remove(5, "b")
	remove(6, "a")
	put(7, "c", "1", 7, 1)
	put(8, "a", "3", 8, 1)
	put(9, "c", "2", 7, 2)
	err = errors.Join(err, w.Lease(7, 60), w.Meta(&etcdbackup.Meta{Index: 9, Term: 2, Voters: []consensus.MemberID{1},
		Compacted: 6, Storage: "3.7.0", Cluster: "3.7.1"}), w.Finish(), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, name)
	for _, row := range []struct {
		revision kv.Revision
		want     etcdbackup.HashKV
		err      error
	}{
		{0, etcdbackup.HashKV{Hash: 3091431873, HashRevision: 9, CompactRevision: 6}, nil},
		{6, etcdbackup.HashKV{Hash: 1416966122, HashRevision: 6, CompactRevision: 6}, nil},
		{7, etcdbackup.HashKV{Hash: 355691997, HashRevision: 7, CompactRevision: 6}, nil},
		{8, etcdbackup.HashKV{Hash: 846424791, HashRevision: 8, CompactRevision: 6}, nil},
		{5, etcdbackup.HashKV{}, kv.ErrCompacted},
		{10, etcdbackup.HashKV{}, kv.ErrFutureRevision},
	} {
		if got, err := f.HashKV(t.Context(), row.revision); got != row.want || !errors.Is(err, row.err) {
			t.Errorf("at %d: got %+v, %v, want %+v, %v", row.revision, got, err, row.want, row.err)
		}
	}
}
