package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

func recordOf(sequence uint64, payload string) consensus.Record {
	return consensus.Record{Term: 2, Config: consensus.FoundingID(), Payload: []byte(payload), Attempt: consensus.Attempt{
		Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 9}, Sequence: sequence}, Revision: sequence + 8}}
}

// entryOf is the entry that a leader makes of the command in r.
func entryOf(index consensus.Index, r consensus.Record) consensus.Entry {
	return consensus.Entry{Index: index, Term: 2, Kind: consensus.EntryCommand, Proposal: r.Proposal, Proposer: 3, Answered: 5,
		ExactRevision: r.Revision, Payload: slices.Clone(r.Payload)}
}

func keep(r consensus.Record) []wal.WitnessRecord {
	return []wal.WitnessRecord{{Attempt: consensus.AttemptIDOf(r.Attempt), Payload: consensus.AppendRecord(nil, &r)}}
}

func forget(r consensus.Record) []wal.WitnessRecord {
	return []wal.WitnessRecord{{Attempt: consensus.AttemptIDOf(r.Attempt), Forget: true}}
}

func dumped(t *testing.T, fs *filestest.MemFS) string {
	t.Helper()
	var out bytes.Buffer
	if err := wal.Dump(&out, fs, dir, keysIf(false)); err != nil {
		t.Fatalf("dump: %v\n%s", err, &out)
	}
	return out.String()
}

// Ensure that an entry is written by name exactly if the record is held at its place, in the order in which the parts of
// batches take effect, and has its payload; and that it is read with its payload either way.
func TestWAL_Append_byName(t *testing.T) {
	a, b, empty := recordOf(1, "put k v"), recordOf(2, "put k w"), recordOf(1, "")
	replaced := recordOf(1, "put k x")
	slow, otherRevision, otherProposal, otherPayload := entryOf(1, a), entryOf(1, a), entryOf(1, a), entryOf(1, a)
	slow.ExactRevision = 0
	zero := a
	zero.Revision = 0
	forgetting := wal.WitnessRecord{Attempt: consensus.AttemptIDOf(a.Attempt), Forget: true, Payload: consensus.AppendRecord(nil, &a)}
	otherRevision.ExactRevision++
	otherProposal.Proposal.Sequence++
	otherPayload.Payload = []byte("put k V")
	likeForeign := entryOf(1, a)
	likeForeign.Payload = b.Payload
	opaque := wal.WitnessRecord{Attempt: consensus.AttemptIDOf(a.Attempt), Payload: []byte("put k v")}
	foreign := wal.WitnessRecord{Attempt: consensus.AttemptIDOf(a.Attempt), Payload: consensus.AppendRecord(nil, &b)}
	longer := wal.WitnessRecord{Attempt: consensus.AttemptIDOf(a.Attempt), Payload: append(consensus.AppendRecord(nil, &a), 1)}
	one := func(e consensus.Entry) []consensus.Entry { return []consensus.Entry{e} }
	for name, c := range map[string]struct {
		before  []wal.Batch // each an Append
		batches []wal.Batch
		named   uint64
	}{
		"held":            {[]wal.Batch{{Witness: keep(a)}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 1},
		"not held":        {[]wal.Batch{{Witness: keep(b)}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 0},
		"slow":            {[]wal.Batch{{Witness: slices.Concat(keep(a), keep(zero))}}, []wal.Batch{{Entries: one(slow)}}, 0},
		"other revision":  {[]wal.Batch{{Witness: keep(a)}}, []wal.Batch{{Entries: one(otherRevision)}}, 0},
		"other proposal":  {[]wal.Batch{{Witness: keep(a)}}, []wal.Batch{{Entries: one(otherProposal)}}, 0},
		"other payload":   {[]wal.Batch{{Witness: keep(a)}}, []wal.Batch{{Entries: one(otherPayload)}}, 0},
		"empty":           {[]wal.Batch{{Witness: keep(empty)}}, []wal.Batch{{Entries: one(entryOf(1, empty))}}, 0},
		"opaque":          {[]wal.Batch{{Witness: []wal.WitnessRecord{opaque}}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 0},
		"foreign":         {[]wal.Batch{{Witness: []wal.WitnessRecord{foreign}}}, []wal.Batch{{Entries: one(likeForeign)}}, 0},
		"foreign's bytes": {[]wal.Batch{{Witness: []wal.WitnessRecord{longer}}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 0},
		"forgotten":       {[]wal.Batch{{Witness: keep(a)}, {Witness: forget(a)}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 0},
		"replaced":        {[]wal.Batch{{Witness: keep(a)}, {Witness: keep(replaced)}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 0},
		"forgotten by the same batch": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Entries: one(entryOf(1, a)), Witness: forget(a)}}, 1},
		"added by the same batch":    {nil, []wal.Batch{{Entries: one(entryOf(1, a)), Witness: keep(a)}}, 0},
		"replaced by the same batch": {[]wal.Batch{{Witness: keep(replaced)}}, []wal.Batch{{Entries: one(entryOf(1, a)), Witness: keep(a)}}, 0},
		"added by an earlier batch":  {nil, []wal.Batch{{Witness: keep(a)}, {Entries: one(entryOf(1, a))}}, 1},
		"forgotten by an earlier batch": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Witness: forget(a)}, {Entries: one(entryOf(1, a))}}, 0},
		"forgotten with its bytes": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Witness: []wal.WitnessRecord{forgetting}}, {Entries: one(entryOf(1, a))}}, 0},
		"forgotten by a later batch": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Entries: one(entryOf(1, a))}, {Witness: forget(a)}}, 1},
		"replaced by an earlier batch": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Witness: keep(replaced)}, {Entries: []consensus.Entry{entryOf(1, a), entryOf(2, replaced)}}}, 1},
		"forgotten and added again": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Witness: slices.Concat(forget(a), keep(a))}, {Entries: one(entryOf(1, a))}}, 1},
		"added and forgotten": {nil, []wal.Batch{{Witness: slices.Concat(keep(a), forget(a))}, {Entries: one(entryOf(1, a))}}, 0},
		"several batches": {[]wal.Batch{{Witness: keep(a)}}, []wal.Batch{{Witness: keep(b)},
			{Entries: []consensus.Entry{entryOf(1, a), entryOf(2, b)}, Witness: forget(a)}, {Entries: []consensus.Entry{entryOf(3, b), entryOf(4, a)}}}, 3},
		"rewritten": {[]wal.Batch{{Witness: keep(a)}, {Entries: one(entryOf(1, a))}}, []wal.Batch{{Entries: one(entryOf(1, a))}}, 1},
		"after a reset": {[]wal.Batch{{Witness: keep(a)}},
			[]wal.Batch{{Reset: &consensus.SnapshotMeta{Position: consensus.Position{Index: 6, Term: 1}}, Entries: one(entryOf(7, a))}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			fs := filestest.NewMem()
			w, m := must(wal.Create(options(fs, 0), identity)), model{}
			for i := range c.before {
				m.append(&c.before[i])
				if err := w.Append(c.before[i]); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.batches {
				m.append(&c.batches[i])
			}
			before := w.Stats().Named
			if err := w.Append(c.batches...); err != nil {
				t.Fatal(err)
			}
			if got := w.Stats().Named - before; got != c.named {
				t.Errorf("%d entries were written by name, want %d:\n%s", got, c.named, dumped(t, fs))
			}
			if _, got, err := wal.Open(options(fs, 0)); err != nil || m.differs(&got) != "" {
				t.Errorf("opened: %v: %s", err, m.differs(&got))
			}
			if got, _, err := wal.Inspect(options(fs, 0)); err != nil || m.differs(&got) != "" {
				t.Errorf("looked at: %v: %s", err, m.differs(&got))
			}
		})
	}
}

// Ensure that entries by name outlive the segments in which their records were added, and records the segments in which entries
// refer to them, wherever a rotation comes between.
func TestWAL_Append_byNameOverSegments(t *testing.T) {
	fs := filestest.NewMem()
	w, m := must(wal.Create(options(fs, 4<<10), identity)), model{}
	rotations, lastSegments := 0, 1
	step := func(batches ...wal.Batch) {
		t.Helper()
		for i := range batches {
			m.append(&batches[i])
		}
		if err := w.Append(batches...); err != nil {
			t.Fatal(err)
		}
		if n := w.Stats().Segments; n > lastSegments {
			rotations, lastSegments = rotations+1, n
		}
		if got, _, err := wal.Inspect(options(fs, 4<<10)); err != nil || m.differs(&got) != "" {
			t.Fatalf("at entry %d: %v: %s", m.last(), err, m.differs(&got))
		}
	}
	long := recordOf(500, "held all the time")
	step(wal.Batch{Witness: keep(long)})
	want := uint64(0)
	for i := uint64(1); i <= 150; i++ {
		r := recordOf(i, strings.Repeat("x", int(i*37%900)+1))
		step(wal.Batch{Witness: keep(r)})
		e := entryOf(m.last()+1, r)
		if i%3 == 0 { // large, so that the rotation often comes right before the entry
			step(wal.Batch{Entries: entries(m.last()+1, 1, int(i*53%1500)), Witness: forget(recordOf(i-1, ""))})
			e.Index = m.last() + 1
		}
		step(wal.Batch{Entries: []consensus.Entry{e, entryOf(e.Index+1, long)}})
		want += 2
		step(wal.Batch{Witness: forget(r)})
		if i%20 == 0 {
			base := metaAt(m.last() - consensus.Index(i%7))
			if err := w.Compact(base); err != nil {
				t.Fatal(err)
			}
			m.compact(base)
			lastSegments = w.Stats().Segments
		}
	}
	s := w.Stats()
	if s.Named != want || rotations < 10 || s.Recycled < 3 {
		t.Errorf("%d by name, want %d; %d rotations: %+v", s.Named, want, rotations, s)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got, err := wal.Open(options(fs, 4<<10)); err != nil || m.differs(&got) != "" {
		t.Errorf("%v: %s", err, m.differs(&got))
	}
}

// Ensure that a record keeps its bytes from the Append, although the caller may reuse its buffer.
func TestWAL_Append_byNameOfCopy(t *testing.T) {
	fs, r, o := filestest.NewMem(), recordOf(1, "put k v"), recordOf(2, "put k w")
	w := must(wal.Create(options(fs, 0), identity))
	var m model
	for i, b := range []wal.Batch{{Witness: keep(o)}, {Witness: slices.Concat(keep(r), keep(o))}} {
		m.append(&wal.Batch{Witness: [][]wal.WitnessRecord{keep(o), keep(r)}[i]})
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
		for j := range b.Witness {
			clear(b.Witness[j].Payload)
		}
	}
	b := wal.Batch{Entries: []consensus.Entry{entryOf(1, r), entryOf(2, o)}}
	m.append(&b)
	if err := w.Append(b); err != nil || w.Stats().Named != 2 {
		t.Errorf("%v: %d by name", err, w.Stats().Named)
	}
	if _, got, err := wal.Open(options(fs, 0)); err != nil || m.differs(&got) != "" {
		t.Errorf("%v: %s", err, m.differs(&got))
	}
}

// Ensure that a log which was opened writes entries by the names of the records that it recovered, and that the recovered
// records stay the same while they are replaced and forgotten.
func TestOpen_byNameOfRecovered(t *testing.T) {
	fs, r := filestest.NewMem(), recordOf(1, "put k v")
	w, m := must(wal.Create(options(fs, 0), identity)), model{}
	batches := []wal.Batch{{Witness: keep(r)}, {Entries: []consensus.Entry{entryOf(1, r)}}}
	for i := range batches {
		m.append(&batches[i])
	}
	if err := errors.Join(w.Append(batches...), w.Close()); err != nil {
		t.Fatal(err)
	}
	w, got, err := wal.Open(options(fs, 0))
	if err != nil || m.differs(&got) != "" {
		t.Fatalf("%v: %s", err, m.differs(&got))
	}
	for _, b := range []wal.Batch{
		{Entries: []consensus.Entry{entryOf(2, r)}}, {Witness: keep(recordOf(1, "PUT K V"))}, {Witness: forget(r)},
	} {
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if m.differs(&got) != "" || w.Stats().Named != 1 {
		t.Errorf("%s; %d by name", m.differs(&got), w.Stats().Named)
	}
}

// Ensure that an entry whose record is not in its own segment is damage, for Open and for Dump.
func TestOpen_byNameOfNothing(t *testing.T) {
	r, e := recordOf(1, "put k v"), entryOf(1, recordOf(1, "put k v"))
	bare := e
	bare.Payload = nil
	kept, forgotten := wal.Items(wal.Batch{Witness: keep(r)}), wal.Items(wal.Batch{Witness: forget(r)})
	opaque := wal.Items(wal.Batch{Witness: []wal.WitnessRecord{{Attempt: consensus.AttemptIDOf(r.Attempt), Payload: []byte("?")}}})
	first := wal.Sealed(identity, wal.Carried(), kept)
	for name, c := range map[string]struct {
		segments [][]byte
		want     string
	}{
		"resolved":       {[][]byte{wal.Sealed(identity, wal.Carried(), kept, wal.Named(bare))}, ""},
		"carried":        {[][]byte{wal.Sealed(identity, slices.Concat(wal.Carried(), kept), wal.Named(bare))}, ""},
		"never held":     {[][]byte{wal.Sealed(identity, wal.Carried(), wal.Named(bare))}, "which the segment does not hold there"},
		"held later":     {[][]byte{wal.Sealed(identity, wal.Carried(), wal.Named(bare), kept)}, "which the segment does not hold there"},
		"forgotten":      {[][]byte{wal.Sealed(identity, wal.Carried(), kept, forgotten, wal.Named(bare))}, "which the segment does not hold there"},
		"not a record":   {[][]byte{wal.Sealed(identity, wal.Carried(), opaque, wal.Named(bare))}, "which holds none"},
		"two payloads":   {[][]byte{wal.Sealed(identity, wal.Carried(), kept, wal.Named(e))}, "entry by name has a payload of its own"},
		"held elsewhere": {[][]byte{first, wal.SealedAfter(identity, 2, first, wal.Carried(), wal.Named(bare))}, "which the segment does not hold there"},
		"held here": {[][]byte{first, wal.SealedAfter(identity, 2, first, slices.Concat(wal.Carried(), kept),
			wal.Named(bare))}, ""},
	} {
		log := contents{}
		for i, segment := range c.segments {
			log[fmt.Sprintf("%016x.wal", i+1)] = segment
		}
		var out bytes.Buffer
		dumpErr := wal.Dump(&out, log.with("", nil), dir, keysIf(false))
		_, got, err := wal.Open(options(log.with("", nil), 0))
		if c.want == "" {
			if err != nil || dumpErr != nil || len(got.Entries) != 1 || !bytes.Equal(got.Entries[0].Payload, r.Payload) {
				t.Errorf("%s: %v, %v, %+v", name, err, dumpErr, got.Entries)
			}
			continue
		}
		var corrupt *wal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Offset == 0 || corrupt.File == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if !errors.Is(dumpErr, wal.ErrCorrupt) || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: dump: %v, want %q in\n%s", name, dumpErr, c.want, &out)
		}
	}
}

// Ensure that Dump prints which entries are by name, and how long their payloads are, also behind a part that it cannot read.
func TestDump_byName(t *testing.T) {
	r, s := recordOf(1, "put k v"), recordOf(2, "put k w")
	log := contents{"0000000000000001.wal": wal.Sealed(identity, wal.Carried(), wal.Items(wal.Batch{Witness: keep(r)},
		wal.Batch{Entries: []consensus.Entry{entryOf(1, r)}}))}
	const want = "entry    1.2 command, 7 bytes, proposal 3/9/1, exact revision 9, by name\n"
	if got := dumped(t, log.with("", nil)); !strings.Contains(got, want) {
		t.Errorf("%q is missing in\n%s", want, got)
	}
	bare := entryOf(2, s)
	bare.Payload = nil
	segment := wal.Sealed(identity, wal.Carried(), wal.Items(wal.Batch{Witness: keep(s)}), wal.Named(bare))
	log["0000000000000001.wal"] = segment
	lost := recordsIn(t, log.with("", nil))[1]
	segment[lost.offset+20] ^= 1
	var out bytes.Buffer
	err := wal.Dump(&out, log.with("", nil), dir, keysIf(false))
	if !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(out.String(), "there, unless in what was not read") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// Ensure that naming allocates nothing per entry, also when the records are added by the same append.
func TestWAL_Append_byNameAllocations(t *testing.T) {
	var held []wal.WitnessRecord
	batches := make([]wal.Batch, 2)
	for i := range uint64(64) {
		r := recordOf(i, "put k v")
		if i%2 == 0 {
			held = append(held, keep(r)...)
		} else {
			batches[0].Witness = append(batches[0].Witness, keep(r)...)
		}
		batches[1].Entries = append(batches[1].Entries, entryOf(consensus.Index(i+1), r))
	}
	encode, none := wal.Encoder(held), wal.Encoder(nil)
	if _, named := encode(batches...); named != 64 {
		t.Errorf("%d by name", named)
	}
	got := testing.AllocsPerRun(10, func() { encode(batches...) })
	if want := testing.AllocsPerRun(10, func() { none(batches[1:]...) }); got > want {
		t.Errorf("%v allocations, without names %v", got, want)
	}
}

// Ensure that the second writing of a command costs tens of bytes, however large the command is.
func TestWAL_Append_byNameBytes(t *testing.T) {
	for _, named := range []bool{false, true} {
		perEntry := bytesPerEntry(t, named, 100)
		t.Logf("by name %v: %.0f bytes an entry with a payload of 1 KiB", named, perEntry)
		if named && perEntry > 100 || !named && perEntry < 1024 {
			t.Errorf("by name %v: %v bytes an entry", named, perEntry)
		}
	}
}

// bytesPerEntry appends n entries of 1 KiB, one by one, and returns the average bytes of each, heads of records included.
func bytesPerEntry(tb testing.TB, named bool, n int) float64 {
	tb.Helper()
	w := must(wal.Create(wal.Options{FS: filestest.NewMem(), Dir: "wal", SegmentBytes: 1 << 30, PackFrom: wal.AsTheyAre}, identity))
	bytes := uint64(0)
	for i := range uint64(n) {
		r := recordOf(i, strings.Repeat("x", 1<<10))
		if named {
			if err := w.Append(wal.Batch{Witness: keep(r)}); err != nil {
				tb.Fatal(err)
			}
		}
		before := w.Stats().RecordBytes
		if err := w.Append(wal.Batch{Entries: []consensus.Entry{entryOf(consensus.Index(i+1), r)}}); err != nil {
			tb.Fatal(err)
		}
		bytes += w.Stats().RecordBytes - before
	}
	return float64(bytes) / float64(n)
}

// BenchmarkWAL_encode measures the CPU of encoding 64 entries of 1 KiB and of their checksum.
func BenchmarkWAL_encode(b *testing.B) {
	for _, named := range []bool{false, true} {
		b.Run(fmt.Sprintf("named=%v", named), func(b *testing.B) {
			var held []wal.WitnessRecord
			var batch wal.Batch
			for i := range uint64(64) {
				r := recordOf(i, strings.Repeat("x", 1<<10))
				if named {
					held = append(held, keep(r)...)
				}
				batch.Entries = append(batch.Entries, entryOf(consensus.Index(i+1), r))
			}
			encode := wal.Encoder(held)
			items := 0
			b.ReportAllocs()
			for b.Loop() {
				items, _ = encode(batch)
			}
			b.ReportMetric(float64(items)/64, "B/entry")
		})
	}
}
