package apply

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// The keys of leases lie on disk: neither attaching them nor a restart needs memory for them.
func TestMachine_leasedKeysLieOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much memory: the race detector, which runs with -short, finds nothing")
	}
	const lease, keys, keyLen = 7, 1_000, 16 << 10
	eng, err := engine.Open(engine.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if err := Bootstrap(eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	options := Options{Store: mvcc.Options{CacheBytes: 1 << 20, Census: census.Options{LogBytes: 1 << 20, IntervalBytes: 1 << 19}}}
	m, err := Open(eng, options)
	if err != nil {
		t.Fatal(err)
	}
	index := m.Applied().Index
	do := func(cmd kv.Command) {
		index++
		results, err := m.Apply([]consensus.Entry{{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil)}})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
	}
	do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: lease, TTLSeconds: 60}})
	for i := range keys {
		key := append(fmt.Appendf(nil, "k%04d", i), bytes.Repeat([]byte("k"), keyLen)...)
		do(kv.Command{Put: &kv.PutOp{Key: key, Lease: lease}})
	}
	const most = keys * keyLen / 4
	if err := eng.Defragment(t.Context()); err != nil { // no compaction uses memory meanwhile
		t.Fatal(err)
	}
	with := heap()
	if n, size := m.Leases().KeysSize(lease); n != keys || size != keys*(keyLen+5) {
		t.Errorf("%d keys of %d bytes hang on the lease, want %d of %d", n, size, keys, keys*(keyLen+5))
	}
	m = nil
	without := heap()
	if held := int(with - without); held > most {
		t.Errorf("a machine holds %d bytes for %d bytes of keys, want at most %d", held, keys*keyLen, most)
	}
	if m, err = Open(eng, options); err != nil {
		t.Fatal(err)
	}
	if held := int(heap() - without); held > most {
		t.Errorf("after a start it holds %d bytes, want at most %d", held, most)
	}
	if n, size := m.Leases().KeysSize(lease); n != keys || size != keys*(keyLen+5) {
		t.Errorf("%d keys of %d bytes hang on the lease after a start, want %d of %d", n, size, keys, keys*(keyLen+5))
	}
}

// Ensure that a key which was loaded with a lease that did not exist does not count as one of a lease that gets this id later:
// neither when it is deleted nor when it is put again, also within one batch.
func TestMachine_loadedKeyOfNoLease(t *testing.T) {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	l := NewLoader(eng)
	for i, key := range []string{"a", "b", "c"} {
		rev := kv.Revision(i + 2)
		err := l.AddVersion(kv.Rev{Main: rev}, false, &kv.KeyValue{Key: []byte(key), CreateRevision: rev, ModRevision: rev, Version: 1, Lease: 9})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Finish(4, 0); err != nil {
		t.Fatal(err)
	}
	base := consensus.Founding(consensus.Config{Voters: []consensus.MemberID{1}})
	base.Position = consensus.Position{Index: 5, Term: 1}
	if err := Found(eng, 77, level.First, &base); err != nil {
		t.Fatal(err)
	}
	m, err := Open(eng, Options{})
	if err != nil {
		t.Fatal(err)
	}
	index := base.Position.Index
	batch := func(commands ...kv.Command) {
		var entries []consensus.Entry
		for i := range commands {
			index++
			entries = append(entries, consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: commands[i].Append(nil)})
		}
		if _, err := m.Apply(entries); err != nil {
			t.Fatal(err)
		}
	}
	batch(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 9, TTLSeconds: 60}}, kv.Command{Delete: &kv.DeleteOp{Key: []byte("a")}})
	batch(kv.Command{Put: &kv.PutOp{Key: []byte("b")}}, kv.Command{Put: &kv.PutOp{Key: []byte("d"), Lease: 9}})
	batch(kv.Command{Delete: &kv.DeleteOp{Key: []byte("c")}})
	if n, size := m.Leases().KeysSize(9); n != 1 || size != 1 {
		t.Errorf("%d keys of %d bytes are counted, and one hangs on the lease", n, size)
	}
	batch(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 9}})
	if found, err := m.Store().Get([]byte("d")); err != nil || found != nil || m.Leases().Len() != 0 {
		t.Errorf("after the end of the lease: %v, %v, %d leases", found, err, m.Leases().Len())
	}
}

// scans counts the reads of the rows of leases.
type scans struct {
	committedRows
	begun, rows int
}

func (s *scans) Scan(lower, upper []byte, visit func(key []byte) bool) error {
	s.begun++
	return s.committedRows.Scan(lower, upper, func(key []byte) bool {
		more := visit(key)
		if more {
			s.rows++ // the engine looks for the next one
		}
		return more
	})
}

// Ensure that the end of a lease searches no keys after the last one: keys that were detached from it are deleted rows, which
// may stay on disk in any number, and every member would step over them before it applies other writes.
func TestMachine_revokeLooksNoFurther(t *testing.T) {
	eng, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Bootstrap(eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(eng, Options{})
	if err != nil {
		t.Fatal(err)
	}
	counted := &scans{committedRows: committedRows{eng}}
	m.executor.rows.Reader = counted
	index := m.Applied().Index
	do := func(cmd kv.Command) {
		index++
		results, err := m.Apply([]consensus.Entry{{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil)}})
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
	}
	for _, keys := range []int{0, 3} {
		do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 60}})
		for i := range keys + 100 {
			do(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%04d", i), Lease: 7}})
		}
		do(kv.Command{Delete: &kv.DeleteOp{Key: fmt.Appendf(nil, "k%04d", keys), End: []byte("l")}})
		counted.begun, counted.rows = 0, 0
		do(kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7}})
		if counted.begun > min(keys, 1) || counted.rows > max(keys-1, 0) {
			t.Errorf("the end of a lease with %d keys began %d scans, which looked for %d rows more", keys, counted.begun, counted.rows)
		}
	}
}
