package apply

import (
	"fmt"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// session is an open session.
type session struct {
	id   consensus.SessionID
	slot uint32
	gone bool // retired by the entry that is being applied
	// bytes is the size of its results, keys and rows.
	bytes  int64
	packed bool // it has packs that are committed
	// Of the batch under way: the pack that takes the next result, and the earlier ones.
	pack *pack
	full []*pack
	seen map[uint64]*chunkOfSeen // which sequences have a result

	// The chunk used last: proposals of a session come nearly in order.
	lastAt uint64
	last   *chunkOfSeen
}

// chunkOfSeen has a bit for each of seenPerChunk sequences in a row.
const seenPerChunk = 512

type chunkOfSeen [seenPerChunk / 64]uint64

func (s *session) chunk(at uint64) *chunkOfSeen {
	if s.last != nil && s.lastAt == at {
		return s.last
	}
	found := s.seen[at]
	if found != nil {
		s.lastAt, s.last = at, found
	}
	return found
}

// has reports whether a proposal of the session has a result.
func (s *session) has(sequence uint64) bool {
	c := s.chunk(sequence / seenPerChunk)
	bit := sequence % seenPerChunk
	return c != nil && c[bit/64]&(1<<(bit%64)) != 0
}

func (s *session) note(sequence uint64) {
	at, bit := sequence/seenPerChunk, sequence%seenPerChunk
	c := s.chunk(at)
	if c == nil {
		c = &chunkOfSeen{}
		s.seen[at] = c
		s.lastAt, s.last = at, c
	}
	c[bit/64] |= 1 << (bit % 64)
}

// maxResultBytes bounds a result in the table. Only transactions of many operations exceed it.
const maxResultBytes = 512

// keep puts the result of a proposal into the table: without the keys and values that history has, and with the same bytes on
// every member, whichever answers. flush writes it.
func (t *sessionTable) keep(s *session, sequence uint64, res *kv.Result, a *answer) {
	if !a.asked {
		t.value = res.Append(t.value[:0])
	}
	if a.asked || len(t.value) > maxResultBytes && res.Txn != nil {
		kept := a.kept(res)
		t.value = kept.Append(t.value[:0])
	}
	if t.pack(s, sequence, t.value) || !t.forgets {
		s.note(sequence)
	}
}

// charge adds bytes to the size of the result table.
func (t *sessionTable) charge(s *session, bytes int64) {
	s.bytes += bytes
	t.kept.Add(bytes)
}

// first returns the result of a proposal that has one, which may be in the batch under way.
func (t *sessionTable) first(s *session, id consensus.ProposalID) (kv.Result, error) {
	row, found := s.pending(id.Sequence)
	if !found && s.packed {
		var err error
		if row, found, err = t.committed(s.slot, id.Sequence); err != nil {
			return kv.Result{}, fmt.Errorf("apply: read the result of %v: %w", id, err)
		}
	}
	invariant.True(found, "proposal %v is known and has a result", id)
	res, err := kv.DecodeResult(row)
	if err != nil {
		return kv.Result{}, fmt.Errorf("apply: read the result of %v: %w", id, err)
	}
	return res, nil
}

// awaits reports whether an entry of the proposal would be executed: its session is open, and it has no result.
func (t *sessionTable) awaits(id consensus.ProposalID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.find(id.Session)
	return s != nil && !s.has(id.Sequence)
}

// result returns the result of a proposal, if an entry of it has been applied and its session is not retired.
func (t *sessionTable) result(id consensus.ProposalID) (kv.Result, bool, error) {
	t.mu.Lock()
	s := t.find(id.Session)
	known := s != nil && s.has(id.Sequence)
	var slot uint32
	if known {
		slot = s.slot
	}
	t.mu.Unlock()
	if !known {
		return kv.Result{}, false, nil
	}
	// A result that is not found was noted by an Apply that has not committed, or its session was retired since.
	row, found, err := t.committed(slot, id.Sequence)
	if err != nil || !found {
		return kv.Result{}, false, err
	}
	res, err := kv.DecodeResult(row)
	return res, err == nil, err
}

// decided reports whether a proposal has a result, and whether its session is retired or refused for ever.
func (t *sessionTable) decided(id consensus.ProposalID) (done, retired bool) {
	if id.IsZero() {
		return false, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(id.Session); s != nil {
		return s.has(id.Sequence), false
	}
	return false, !t.mayOpen(id.Session)
}

// bytesOf is the size of the results of one session.
func (t *sessionTable) bytesOf(id consensus.SessionID) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.find(id); s != nil {
		return s.bytes
	}
	return 0
}

// pack adds a result to the session's pack of the batch under way, and reports whether it is the first one in the pack.
func (t *sessionTable) pack(s *session, sequence uint64, result []byte) (first bool) {
	if s.pack == nil || len(s.pack.bytes) >= maxPackBytes || s.pack.least/seenPerChunk != sequence/seenPerChunk {
		if s.pack != nil {
			s.full = append(s.full, s.pack)
		} else {
			t.packing = append(t.packing, s)
		}
		s.pack = t.newPack()
	}
	s.pack.add(sequence, result)
	return len(s.pack.entries) == 1
}

func (t *sessionTable) newPack() *pack {
	if n := len(t.spare); n > 0 {
		p := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return p
	}
	return &pack{}
}

// dropPacks drops the packs of a session in the batch under way.
func (t *sessionTable) dropPacks(s *session) {
	const keep = 16
	for _, p := range append(s.full, s.pack) {
		if p != nil && len(t.spare) < keep {
			p.entries, p.bytes = p.entries[:0], p.bytes[:0]
			t.spare = append(t.spare, p)
		}
	}
	s.full, s.pack = nil, nil
}

// flush writes the packs into the batch, before it is committed.
func (t *sessionTable) flush(w rowWriter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.packing {
		for _, p := range append(s.full, s.pack) {
			if p == nil {
				continue // the session was retired
			}
			t.row = appendPackRow(t.row[:0], s.slot, p.least)
			t.value = p.append(t.value[:0])
			w.Set(t.row, t.value)
			s.packed = true
			t.charge(s, int64(len(t.row)+len(t.value)))
		}
		t.dropPacks(s)
	}
	clear(t.packing)
	t.packing = t.packing[:0]
}

// pending returns a result of the batch under way.
func (s *session) pending(sequence uint64) (result []byte, found bool) {
	for _, p := range append(s.full, s.pack) {
		if p != nil {
			if result, found = p.find(sequence); found {
				return result, true
			}
		}
	}
	return nil, false
}

// committed reads a result from a committed pack. Proposals come nearly in order: it is mostly in the last pack that may have
// it, and never below its chunk of sequences.
func (t *sessionTable) committed(slot uint32, sequence uint64) (result []byte, found bool, err error) {
	_, upper := packBounds(slot)
	it, err := t.engine.NewIter(appendPackRow(nil, slot, sequence-sequence%seenPerChunk), upper)
	if err != nil {
		return nil, false, err
	}
	for valid := it.SeekLT(appendPackRow(nil, slot, sequence+1)); valid && !found && err == nil; valid = it.Prev() {
		var least uint64
		if _, least, err = decodePackKey(it.Key()); err != nil {
			break
		}
		err = eachPacked(least, it.Value(), func(at uint64, bytes []byte) {
			if at == sequence {
				result, found = append([]byte{}, bytes...), true
			}
		})
	}
	if err == nil {
		err = it.Error()
	}
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	return result, found, err
}

func (t *sessionTable) loadPacks(bySlot map[uint32]*session) error {
	return scan(t.engine, []byte{tablePack}, func(rest, value []byte) error {
		slot, least, err := decodePackKey(append([]byte{tablePack}, rest...))
		s := bySlot[slot]
		if err == nil && s == nil {
			err = fmt.Errorf("%w: results %x of no session", ErrCorruptRow, rest)
		}
		if err != nil {
			return err
		}
		s.packed = true
		t.charge(s, int64(packKeyLen+len(value)))
		first := true
		return eachPacked(least, value, func(sequence uint64, _ []byte) {
			if first || !t.forgets {
				s.note(sequence)
			}
			first = false
		})
	})
}
