package apply

import (
	"encoding/binary"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// A pack is the results of the proposals of one session in one batch of entries: a row instead of one for each of them. Its key
// has the least sequence in it. From level.History on results are written so; rows of single results stay until their session
// is retired.
//
//	sequence - least (uvarint) | length (uvarint) | result, for each in the order of the log
type pack struct {
	least   uint64
	entries []packed
	bytes   []byte // their results
}

// packed is a result in a pack, which begins where the one before ends.
type packed struct {
	sequence uint64
	end      int
}

// maxPackBytes ends a pack; one more result may be added to one below that.
const maxPackBytes = 32 << 10

const packKeyLen = 1 + 4 + 8

func appendPackRow(dst []byte, slot uint32, least uint64) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, tablePack), slot)
	return binary.BigEndian.AppendUint64(dst, least)
}

// packBounds are the bounds of all packs of one slot.
func packBounds(slot uint32) (lower, upper []byte) {
	lower = binary.BigEndian.AppendUint32([]byte{tablePack}, slot)
	if slot == 1<<32-1 {
		return lower, []byte{tablePack + 1}
	}
	return lower, binary.BigEndian.AppendUint32([]byte{tablePack}, slot+1)
}

func (p *pack) add(sequence uint64, result []byte) {
	if len(p.entries) == 0 || sequence < p.least {
		p.least = sequence
	}
	p.bytes = append(p.bytes, result...)
	p.entries = append(p.entries, packed{sequence, len(p.bytes)})
}

func (p *pack) find(sequence uint64) (result []byte, found bool) {
	begin := 0
	for _, e := range p.entries {
		if e.sequence == sequence {
			return p.bytes[begin:e.end], true
		}
		begin = e.end
	}
	return nil, false
}

// append appends the value of the row.
func (p *pack) append(dst []byte) []byte {
	begin := 0
	for _, e := range p.entries {
		dst = binary.AppendUvarint(dst, e.sequence-p.least)
		dst = binary.AppendUvarint(dst, uint64(e.end-begin))
		dst = append(dst, p.bytes[begin:e.end]...)
		begin = e.end
	}
	return dst
}

// eachPacked calls visit for every result in the row of a pack.
func eachPacked(least uint64, row []byte, visit func(sequence uint64, result []byte)) error {
	for at := row; len(at) > 0; {
		ahead, n := binary.Uvarint(at)
		if n <= 0 || least+ahead < least {
			return fmt.Errorf("%w: results %x", ErrCorruptRow, row)
		}
		length, m := binary.Uvarint(at[n:])
		if m <= 0 || length > uint64(len(at)-n-m) {
			return fmt.Errorf("%w: results %x", ErrCorruptRow, row)
		}
		at = at[n+m:]
		visit(least+ahead, at[:length])
		at = at[length:]
	}
	return nil
}

// pack adds a result to the session's pack of the batch under way.
func (t *sessionTable) pack(s *session, sequence uint64, result []byte) {
	if s.pack == nil || len(s.pack.bytes) >= maxPackBytes {
		if s.pack != nil {
			s.full = append(s.full, s.pack)
		} else {
			t.packing = append(t.packing, s)
		}
		s.pack = t.newPack()
	}
	s.pack.add(sequence, result)
}

func (t *sessionTable) newPack() *pack {
	if n := len(t.spare); n > 0 {
		p := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return p
	}
	return &pack{}
}

// dropPacks forgets what the batch has of a session.
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

// flush puts the packs of the batch into it, before it is committed.
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

// committed reads a result that was packed. Proposals come in order, nearly: it is mostly in the last pack that may have it.
func (t *sessionTable) committed(slot uint32, sequence uint64) (result []byte, found bool, err error) {
	lower, upper := packBounds(slot)
	it, err := t.engine.NewIter(lower, upper)
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

func decodePackKey(key []byte) (slot uint32, least uint64, err error) {
	if len(key) != packKeyLen {
		return 0, 0, fmt.Errorf("%w: results at %x", ErrCorruptRow, key)
	}
	return binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint64(key[5:]), nil
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
		return eachPacked(least, value, func(sequence uint64, _ []byte) { s.note(sequence) })
	})
}

// keptOf reads the result of a proposal that is committed.
func (t *sessionTable) keptOf(slot uint32, id consensus.ProposalID) (res kv.Result, found bool, err error) {
	row, found, err := t.committed(slot, id.Sequence)
	if err == nil && !found {
		row, found, err = t.engine.Get(appendOutcomeRow(nil, slot, id.Sequence))
	}
	if err != nil || !found {
		return kv.Result{}, false, err
	}
	res, err = kv.DecodeResult(row)
	return res, err == nil, err
}
