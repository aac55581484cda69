package wal_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

const dir = "member/wal"

var identity = wal.Identity{Cluster: 0xc1, Member: 0xa1, Storage: wal.StorageID{0x57, 0x07, 0xa6, 0xe0}}

var allSealed = flag.Bool("sealed", false, "seal the records of all logs: a few tests count bytes, and fail then")

// keys are those of logs that are sealed.
var keys = atresttest.Ring()

// keysIf returns the keys of a log that is sealed, or is not.
func keysIf(sealed bool) *atrest.Ring {
	if sealed || *allSealed {
		return keys
	}
	return nil
}

// options are those of a log that does not pack its records: tests count how many fit into a segment.
func options(fs env.FS, segmentBytes int64) wal.Options {
	return wal.Options{FS: fs, Dir: dir, SegmentBytes: segmentBytes, PackFrom: wal.AsTheyAre, Keys: keysIf(false)}
}

// sealedOptions are those of a log whose records are sealed, or are not.
func sealedOptions(fs env.FS, segmentBytes int64, sealed bool) wal.Options {
	o := options(fs, segmentBytes)
	o.Keys = keysIf(sealed)
	return o
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// memory returns a crashable file system in which the parent of the log directory exists durably.
func memory() *filestest.MemFS {
	fs := filestest.NewCrashableMem()
	if err := fs.MkdirAll("member", 0o700); err != nil {
		panic(err)
	}
	if err := must(fs.OpenDir("/")).Sync(); err != nil {
		panic(err)
	}
	return fs
}

// model is the expected contents of a log: the reference of every test here.
type model struct {
	Hard    consensus.HardState
	Base    consensus.SnapshotMeta
	Entries []consensus.Entry
	Witness []wal.WitnessRecord
}

func (m *model) last() consensus.Index {
	return m.Base.Position.Index + consensus.Index(len(m.Entries))
}

func (m *model) clone() model {
	c := *m
	c.Entries, c.Witness = slices.Clone(m.Entries), slices.Clone(m.Witness)
	return c
}

func (m *model) append(b *wal.Batch) {
	if b.Reset != nil {
		m.Base, m.Entries = *b.Reset, nil
	}
	if len(b.Entries) > 0 {
		keep := b.Entries[0].Index - m.Base.Position.Index - 1
		m.Entries = append(slices.Clone(m.Entries[:keep]), b.Entries...)
	}
	if b.Hard != nil {
		m.Hard = *b.Hard
	}
	for _, r := range b.Witness {
		at := slices.IndexFunc(m.Witness, func(o wal.WitnessRecord) bool { return o.Attempt == r.Attempt })
		m.Witness = slices.Clone(m.Witness)
		switch {
		case r.Forget && at >= 0:
			m.Witness = slices.Delete(m.Witness, at, at+1)
		case r.Forget:
		case at >= 0:
			m.Witness[at].Payload = r.Payload
		default:
			m.Witness = append(m.Witness, r)
		}
	}
}

func (m *model) compact(base consensus.SnapshotMeta) {
	if base.Position.Index <= m.Base.Position.Index {
		return
	}
	m.Entries = slices.Clone(m.Entries[base.Position.Index-m.Base.Position.Index:])
	m.Base = base
}

// bytes encodes m, so that comparing states is fast.
func (m *model) bytes() []byte {
	b := consensus.AppendHardState(nil, &m.Hard)
	b = consensus.AppendSnapshotMeta(b, &m.Base)
	for i := range m.Entries {
		b = consensus.AppendEntry(b, &m.Entries[i])
	}
	for i := range m.Witness {
		b = append(append(b, m.Witness[i].Attempt[:]...), m.Witness[i].Payload...)
	}
	return b
}

// differs returns how the recovered log differs from m, or an empty string.
func (m *model) differs(r *wal.Recovered) string {
	got := model{Hard: r.Hard, Base: r.Base, Entries: r.Entries, Witness: r.Witness}
	if len(got.Entries) == len(m.Entries) && len(got.Witness) == len(m.Witness) && bytes.Equal(m.bytes(), got.bytes()) {
		return ""
	}
	return fmt.Sprintf("want hard %+v, base %v, %d entries, %d records; got %+v, %v, %d, %d", m.Hard, m.Base.Position,
		len(m.Entries), len(m.Witness), got.Hard, got.Base.Position, len(got.Entries), len(got.Witness))
}

// history draws batches that a core might write.
type history struct {
	rng     *rand.Rand
	term    consensus.Term
	payload int // bytes, at most
	next    uint64
	held    []drawn
	gone    []drawn // the last ones that were forgotten or replaced: no entry may be written by their names
}

// drawn is a witness record; one by whose name no entry can be written has no attempt, and bytes that are not a record.
type drawn struct {
	id     wal.AttemptID
	record consensus.Record
}

func newHistory(seed uint64, payload int) *history {
	return &history{rng: rand.New(rand.NewPCG(seed, 17)), term: 1, payload: payload}
}

func (h *history) bytes() []byte {
	b := make([]byte, h.rng.IntN(h.payload)+1)
	for i := range b {
		b[i] = byte(h.rng.Uint32())
	}
	if h.rng.IntN(2) == 0 {
		copy(b[len(b)/2:], b) // such records become smaller if they are packed
	}
	return b
}

func (h *history) entry(index consensus.Index) consensus.Entry {
	h.next++
	e := consensus.Entry{Index: index, Term: h.term, Kind: consensus.EntryCommand, Payload: h.bytes(),
		Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 3, Number: 9}, Sequence: h.next}, Proposer: 3}
	if h.rng.IntN(4) == 0 {
		e.Answered, e.ExactRevision = 5, h.next
	}
	if known := append(slices.Clip(h.held), h.gone...); len(known) > 0 && h.rng.IntN(2) == 0 {
		of := &known[h.rng.IntN(len(known))].record
		e.Proposal, e.Answered, e.ExactRevision, e.Payload = of.Proposal, 5, of.Revision, of.Payload
		switch h.rng.IntN(16) {
		case 0:
			e.ExactRevision++
		case 1:
			e.ExactRevision = 0
		case 2:
			e.Payload = h.bytes()
		}
	}
	return e
}

// records draws changes of the pool.
func (h *history) records() (changes []wal.WitnessRecord) {
	for range h.rng.IntN(3) {
		k := h.rng.IntN(8)
		if len(h.held) > 0 && k < 4 {
			changes = append(changes, wal.WitnessRecord{Attempt: h.held[0].id, Forget: true})
			h.gone, h.held = append(h.gone, h.held[0]), h.held[1:]
			continue
		}
		h.next++
		d := drawn{record: consensus.Record{Term: h.term, Payload: h.bytes(), Attempt: consensus.Attempt{Revision: h.next,
			Proposal: consensus.ProposalID{Session: consensus.SessionID{Member: 7, Number: 1}, Sequence: h.next}}}}
		switch {
		case k == 7:
			d = drawn{id: wal.AttemptID{0: 7, 22: byte(h.next >> 8), 23: byte(h.next)}}
			h.held = append(h.held, d)
			changes = append(changes, wal.WitnessRecord{Attempt: d.id, Payload: h.bytes()})
			continue
		case k == 6 && len(h.held) > 0:
			at := h.rng.IntN(len(h.held))
			h.gone = append(h.gone, h.held[at])
			d.record.Attempt = h.held[at].record.Attempt // the same attempt again, with another payload
			h.held = slices.Delete(h.held, at, at+1)
		}
		d.id = consensus.AttemptIDOf(d.record.Attempt)
		h.held = append(h.held, d)
		changes = append(changes, wal.WitnessRecord{Attempt: d.id, Payload: consensus.AppendRecord(nil, &d.record)})
	}
	h.gone = h.gone[max(len(h.gone)-4, 0):]
	return changes
}

// adopt makes h continue with the contents of m.
func (h *history) adopt(m *model) {
	for i := range m.Witness {
		record, err := consensus.DecodeRecord(m.Witness[i].Payload)
		if err != nil || consensus.AttemptIDOf(record.Attempt) != m.Witness[i].Attempt {
			record = consensus.Record{}
		}
		h.held = append(h.held, drawn{m.Witness[i].Attempt, record})
	}
}

func (h *history) meta(mark consensus.Position) consensus.SnapshotMeta {
	return consensus.SnapshotMeta{Position: mark, ConfigID: consensus.ConfigID{Index: 1, Term: 1},
		Config: consensus.Config{Voters: []consensus.MemberID{3, 5},
			Members: []consensus.Member{{ID: 3, PeerURLs: []string{"http://a:2380"}}, {ID: 5, Name: "b"}}}}
}

// batch draws the next batch after m.
func (h *history) batch(m *model) wal.Batch {
	var b wal.Batch
	first := m.last() + 1
	b.Witness = h.records() // before the entries, though later in effect: entries may name records that do not exist yet
	switch h.rng.IntN(12) {
	case 0:
		h.term++
		if n := len(m.Entries); n > 0 {
			first -= consensus.Index(h.rng.IntN(min(n, 4)))
		}
	case 1:
		if h.rng.IntN(4) == 0 {
			index := m.Base.Position.Index + consensus.Index(h.rng.IntN(len(m.Entries)+5)) // also inside the log
			meta := h.meta(consensus.Position{Index: index, Term: h.term})
			b.Reset, first = &meta, index+1
		}
	}
	for range h.rng.IntN(4) {
		b.Entries = append(b.Entries, h.entry(first))
		first++
	}
	if h.rng.IntN(3) == 0 {
		b.Hard = &consensus.HardState{Term: h.term, Vote: 3, Commit: m.Base.Position.Index}
	}
	return b
}

// base draws a position to compact to; false if there is none.
func (h *history) base(m *model) (consensus.SnapshotMeta, bool) {
	if len(m.Entries) == 0 {
		return consensus.SnapshotMeta{}, false
	}
	return h.meta(m.Entries[h.rng.IntN(len(m.Entries))].Position()), true
}

// Ensure that the next Open returns the log after all appends, truncations, resets and compactions, over many reopenings, with
// small segments.
func TestWAL_Open_equalsModel(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 9
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			fs, h := filestest.NewMem(), newHistory(seed, 700)
			var m model
			named, packed, from := uint64(0), uint64(0), []int{wal.AsTheyAre, 1, 0}[seed%3]
			o := options(fs, 8<<10)
			o.PackFrom = from
			w := must(wal.Create(o, identity))
			for step := range 400 {
				switch k := h.rng.IntN(40); {
				case k == 0:
					named, packed = named+w.Stats().Named, packed+w.Stats().Packed
					if h.rng.IntN(2) == 0 {
						if err := w.Close(); err != nil {
							t.Fatal(err)
						}
					}
					var got wal.Recovered
					var err error
					if w, got, err = wal.Open(o); err != nil {
						t.Fatalf("step %d: %v", step, err)
					}
					if d := m.differs(&got); d != "" || got.Identity != identity || got.CutBytes != 0 {
						t.Fatalf("step %d: cut %d, %v: %s", step, got.CutBytes, got.Identity, d)
					}
				case k < 4:
					if base, ok := h.base(&m); ok {
						if err := w.Compact(base); err != nil {
							t.Fatal(err)
						}
						m.compact(base)
					}
				default:
					var batches []wal.Batch
					for range h.rng.IntN(3) + 1 {
						b := h.batch(&m)
						m.append(&b)
						batches = append(batches, b)
					}
					if err := w.Append(batches...); err != nil {
						t.Fatal(err)
					}
				}
			}
			if named < 10 {
				t.Errorf("only %d entries were written by name", named)
			}
			if (from != wal.AsTheyAre) != (packed > 10) {
				t.Errorf("%d records were packed", packed)
			}
			if s := w.Stats(); seed == 0 && (s.Recycled == 0 || s.Segments > 40) {
				t.Errorf("nothing was recycled, or nothing freed: %+v", s)
			}
		})
	}
}

// Ensure that boots and epoch outlive the segments that they were written to, and that the latest count.
func TestWAL_Append_bootsAndEpoch(t *testing.T) {
	fs := memory()
	founded := identity
	founded.Epoch = consensus.Epoch{Number: 3, Recovery: [16]byte{3}}
	w := must(wal.Create(options(fs, 4<<10), founded))
	check := func(boots uint64, epoch consensus.Epoch) {
		t.Helper()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		inspected, _, err := wal.Inspect(options(fs, 4<<10))
		if err != nil {
			t.Fatal(err)
		}
		var got wal.Recovered
		if w, got, err = wal.Open(options(fs, 4<<10)); err != nil {
			t.Fatal(err)
		}
		want := identity
		want.Epoch = epoch
		if got.Boots != boots || got.Identity != want || inspected.Boots != boots || inspected.Identity != want {
			t.Errorf("got %d %v, inspected %d %v, want %d %v", got.Boots, got.Identity, inspected.Boots, inspected.Identity,
				boots, want)
		}
	}
	check(0, founded.Epoch)
	recovered := consensus.Epoch{Number: 4, Recovery: [16]byte{4}}
	if err := w.Append(wal.Batch{Boots: 7}, wal.Batch{Boots: 8, Epoch: &recovered}); err != nil {
		t.Fatal(err)
	}
	check(8, recovered)
	for range 20 { // several segments
		if err := w.Append(wal.Batch{Reset: &consensus.SnapshotMeta{}, Entries: []consensus.Entry{
			{Index: 1, Term: 1, Payload: make([]byte, 1000)},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	check(8, recovered)
}
