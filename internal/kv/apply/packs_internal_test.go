package apply

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
)

// packBench is a table of sessions on an engine, with a batch for each step.
type packBench struct {
	t     *testing.T
	eng   engine.Engine
	table *sessionTable
}

// batchRows is a rowWriter on an engine's batch.
type batchRows struct{ engine.Batch }

func (b *batchRows) DeleteRaw(key []byte)               { b.Delete(key) }
func (b *batchRows) DeleteRawRange(lower, upper []byte) { b.DeleteRange(lower, upper) }

func newPackBench(t *testing.T) *packBench {
	eng, err := engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	b := &packBench{t: t, eng: eng}
	b.open()
	return b
}

func (b *packBench) open() {
	b.table = newSessionTable(b.eng, &memberTable{})
	if err := b.table.load(); err != nil {
		b.t.Fatal(err)
	}
}

// batch makes changes in a batch and commits it.
func (b *packBench) batch(do func(w rowWriter)) {
	b.t.Helper()
	w := &batchRows{b.eng.NewBatch()}
	do(w)
	b.table.flush(w)
	if err := w.Commit(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *packBench) keep(id consensus.ProposalID) {
	res := kv.Result{Revision: kv.Revision(id.Sequence)}
	b.table.keep(b.table.find(id.Session), id.Sequence, &res, &answer{})
}

func (b *packBench) want(when string, id consensus.ProposalID, found bool) {
	b.t.Helper()
	res, got, err := b.table.result(id)
	if err != nil || got != found || found && res.Revision != kv.Revision(id.Sequence) {
		b.t.Errorf("%s: %v has %+v, %v, %v; want it found: %v", when, id, res, got, err, found)
	}
}

// Ensure that each result is found in its batch, in the store, and after a restart, in whatever order proposals came, and
// however many a batch has; and that no row is left of a retired session.
func TestSessionTable_packs(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector finds nothing here")
	}
	b := newPackBench(t)
	one, other := sessionID(7, 1), sessionID(8, 1)
	b.batch(func(w rowWriter) {
		b.table.open(w, one)
		b.table.open(w, other)
	})
	const many = 8192
	for from := uint64(1); from <= many; from += many / 4 {
		b.batch(func(rowWriter) {
			for i := range uint64(many / 4) {
				sequence := from + (i ^ 5) // not in order
				if i%2 == 0 {              // the odd ones of the other session come in batches of their own
					b.keep(consensus.ProposalID{Session: other, Sequence: sequence})
				}
				b.keep(consensus.ProposalID{Session: one, Sequence: sequence})
				id := consensus.ProposalID{Session: one, Sequence: sequence}
				if res, err := b.table.first(b.table.find(one), id); err != nil || res.Revision != kv.Revision(sequence) {
					t.Fatalf("within its batch %v has %+v, %v", id, res, err)
				}
			}
		})
	}
	for sequence := uint64(1); sequence <= many; sequence++ {
		id := consensus.ProposalID{Session: other, Sequence: sequence}
		if _, found, _ := b.table.result(id); !found && sequence%5 == 0 {
			b.batch(func(rowWriter) { b.keep(id) })
		}
	}
	before := b.table.kept.Load()
	for _, when := range []string{"committed", "after a start"} {
		for sequence := uint64(1); sequence <= many; sequence++ {
			b.want(when, consensus.ProposalID{Session: one, Sequence: sequence}, true)
			id := consensus.ProposalID{Session: other, Sequence: sequence}
			b.want(when, id, b.table.find(other).has(sequence))
		}
		b.want(when, consensus.ProposalID{Session: one, Sequence: many + 1}, false)
		b.open()
	}
	if after := b.table.kept.Load(); after != before || after != b.table.bytesOf(one)+b.table.bytesOf(other) {
		t.Errorf("%d bytes are counted after a start, %d before", after, before)
	}
	b.batch(func(w rowWriter) {
		b.keep(consensus.ProposalID{Session: one, Sequence: many + 1})
		b.table.retire(w, one)
		b.table.retire(w, other)
	})
	left := 0
	if err := scan(b.eng, []byte{tablePack}, func(_, _ []byte) error { left++; return nil }); err != nil {
		t.Fatal(err)
	}
	if left > 0 || b.table.kept.Load() != 0 {
		t.Errorf("%d rows and %d bytes are left", left, b.table.kept.Load())
	}
}

func FuzzEachPacked(f *testing.F) {
	p := &pack{}
	for i := range uint64(5) {
		p.add(100-i, fmt.Appendf(nil, "result %d", i))
	}
	f.Add(p.least, p.append(nil))
	f.Add(uint64(1<<64-1), []byte{1, 0})
	f.Fuzz(func(t *testing.T, least uint64, row []byte) {
		var again pack
		if eachPacked(least, row, again.add) != nil || len(row) == 0 {
			return
		}
		var third pack
		if err := eachPacked(again.least, again.append(nil), third.add); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.bytes, third.bytes) || len(again.entries) != len(third.entries) {
			t.Errorf("%+v became %+v", again, third)
		}
		for i, e := range again.entries {
			if third.entries[i] != e {
				t.Errorf("%+v became %+v", again, third)
			}
		}
	})
}

// Ensure that a client which numbers its proposals arbitrarily cannot make a search read many packs for one result.
func TestSessionTable_packs_ofOneChunk(t *testing.T) {
	b := newPackBench(t)
	id := sessionID(7, 1)
	b.batch(func(w rowWriter) { b.table.open(w, id) })
	const batches = 2000
	for i := range uint64(batches) {
		b.batch(func(rowWriter) {
			b.keep(consensus.ProposalID{Session: id, Sequence: 1 + i})
			b.keep(consensus.ProposalID{Session: id, Sequence: 1_000_000 - i})
		})
	}
	inChunk := map[uint64]int{}
	err := scan(b.eng, []byte{tablePack}, func(rest, row []byte) error {
		_, least, err := decodePackKey(append([]byte{tablePack}, rest...))
		if err != nil {
			return err
		}
		inChunk[least/seenPerChunk]++
		return eachPacked(least, row, func(sequence uint64, _ []byte) {
			if sequence/seenPerChunk != least/seenPerChunk {
				t.Errorf("a pack has results %d and %d", least, sequence)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for chunk, packs := range inChunk {
		if packs > seenPerChunk {
			t.Errorf("chunk %d has %d packs", chunk, packs)
		}
	}
	for i := range uint64(batches) {
		b.want("counted up", consensus.ProposalID{Session: id, Sequence: 1 + i}, true)
		b.want("counted down", consensus.ProposalID{Session: id, Sequence: 1_000_000 - i}, true)
	}
}
