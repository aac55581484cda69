package apply

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// longestBatch notes how long the batches of an engine are when they are committed.
type longestBatch struct {
	engine.Engine
	bytes int
}

type notedBatch struct {
	engine.Batch
	of *longestBatch
}

func (l *longestBatch) NewBatch() engine.Batch { return &notedBatch{l.Engine.NewBatch(), l} }

func (b *notedBatch) Commit() error {
	b.of.bytes = max(b.of.bytes, b.Len())
	return b.Batch.Commit()
}

// bootstrapped opens a machine on an engine, and returns a function that applies commands to it in one call.
func bootstrapped(t *testing.T, eng engine.Engine) (m *Machine, apply func(commands ...kv.Command)) {
	t.Helper()
	if err := Bootstrap(eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	m, err := Open(eng, Options{Store: mvcc.Options{CacheBytes: 1 << 20,
		Census: census.Options{LogBytes: 1 << 20, IntervalBytes: 1 << 19}}})
	if err != nil {
		t.Fatal(err)
	}
	index := m.Applied().Index
	return m, func(commands ...kv.Command) {
		t.Helper()
		entries := make([]consensus.Entry, len(commands))
		for i := range commands {
			index++
			entries[i] = consensus.Entry{Index: index, Term: 1, Kind: consensus.EntryCommand, Payload: commands[i].Append(nil)}
		}
		results, err := m.Apply(entries)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if results[i].Err != nil {
				t.Fatal(results[i].Err)
			}
		}
	}
}

// Ensure that deletions of many bytes each which are applied in one call are not all in memory at once.
func TestMachine_Apply_manyLargeDeletions(t *testing.T) {
	const ranges, keys, keyLen = 16, 64, 16 << 10
	mem, err := engine.OpenMem(engine.MemOptions{FS: filestest.NewMem(), Dir: "store"})
	if err != nil {
		t.Fatal(err)
	}
	eng := &longestBatch{Engine: mem}
	m, apply := bootstrapped(t, eng)
	var deletions []kv.Command
	for r := range ranges {
		name := []byte{'a' + byte(r)}
		for i := range keys {
			key := append(fmt.Appendf(bytes.Clone(name), "%04d", i), bytes.Repeat([]byte("k"), keyLen)...)
			apply(kv.Command{Put: &kv.PutOp{Key: key}})
		}
		deletions = append(deletions, kv.Command{Delete: &kv.DeleteOp{Key: name, End: []byte{name[0] + 1}}})
	}
	eng.bytes = 0
	apply(deletions...)
	if most := 4<<20 + 3*keys*keyLen; eng.bytes > most {
		t.Errorf("a batch of %d bytes was committed, want at most %d", eng.bytes, most)
	}
	left, _, err := m.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}, CountOnly: true})
	if err != nil || left.Count != 0 {
		t.Errorf("%d keys are left: %v", left.Count, err)
	}
}

// Ensure that deleting keys takes no more memory than the share for it assumes (memory.Shares.Deletion): about ten times their
// bytes, with 64 for each. Memory allocated while the collector marks counts as reachable, more of it the longer marking takes
// on a loaded machine. So the least of several peaks counts: garbage only adds to a peak.
func TestMachine_Apply_deletionMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector finds nothing here")
	}
	const times, lease, attempts = 14, 7, 5
	for _, tc := range []struct {
		name         string
		keys, keyLen int
		lease        kv.LeaseID
		deletion     kv.Command
	}{
		{"long keys", 512, 16 << 10, 0, kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}},
		{"short keys", 40_000, 12, 0, kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}},
		{"leased keys", 512, 16 << 10, lease, kv.Command{Delete: &kv.DeleteOp{Key: []byte("k"), End: []byte("l")}}},
		{"the end of a lease", 512, 16 << 10, lease, kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: lease}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			size := tc.keys * (tc.keyLen + 8 + 64)
			least := math.MaxInt
			for range attempts {
				held := heldByDeletion(t, tc.keys, tc.keyLen, tc.lease, tc.deletion)
				t.Logf("applying held %.1f times the keys", float64(held)/float64(size))
				if least = min(least, held); least <= times*size {
					return
				}
			}
			t.Errorf("applying held at least %d bytes, want at most %d", least, times*size)
		})
	}
}

// heldByDeletion returns mostHeld of applying a deletion to a store with keys of keyLen bytes and a number, on a lease.
func heldByDeletion(t *testing.T, keys, keyLen int, lease kv.LeaseID, deletion kv.Command) int {
	t.Helper()
	eng, err := engine.Open(engine.Options{Dir: t.TempDir(), CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	_, apply := bootstrapped(t, eng)
	if lease != 0 {
		apply(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: lease, TTLSeconds: 60}})
	}
	for next := 0; next < keys; {
		var puts []kv.Command
		for ; next < keys && len(puts) < max(1, 1<<20/keyLen/100); next++ {
			key := append(fmt.Appendf(nil, "k%07d", next), bytes.Repeat([]byte("k"), keyLen)...)
			puts = append(puts, kv.Command{Put: &kv.PutOp{Key: key, Lease: lease}})
		}
		apply(puts...)
	}
	if err := eng.Defragment(t.Context()); err != nil {
		t.Fatal(err)
	}
	return mostHeld(func() { apply(deletion) })
}

// mostHeld returns how much more of the heap is reachable at most while f runs, by repeated collections. Garbage does not
// count: its amount depends on when the collector runs.
func mostHeld(f func()) int {
	before := heap()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		top, sample := before, []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			runtime.GC()
			metrics.Read(sample)
			top = max(top, sample[0].Value.Uint64())
			select {
			case <-done:
				most <- top
				return
			default:
			}
		}
	}()
	f()
	close(done)
	return int(<-most - before)
}
