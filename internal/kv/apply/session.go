package apply

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/invariant"
	"github.com/quorate/quorate/internal/kv"
)

// sessions are the open sessions. Which of their proposals have a result is a set of bits in memory, so that a new
// proposal, which is nearly every one, costs no look-up; the results themselves are rows of the engine.
type sessions struct {
	byID     map[consensus.SessionID]*session
	byMember map[consensus.MemberID][]*session // in the order of opening
	highest  map[consensus.MemberID]uint64     // number of a session that was opened or retired
	nextSlot uint32
}

type session struct {
	id   consensus.SessionID
	slot uint32
	gone bool // retired by the entry that is being applied
	// bytes is what its results take, keys and rows.
	bytes int64
	seen  map[uint64]*chunkOfSeen

	// The chunk used last: proposals of a session come in order, nearly.
	lastAt uint64
	last   *chunkOfSeen
}

// chunkOfSeen has a bit for each of seenPerChunk sequences in a row.
const seenPerChunk = 512

type chunkOfSeen [seenPerChunk / 64]uint64

func sessionID(member, number uint64) consensus.SessionID {
	return consensus.SessionID{Member: consensus.MemberID(member), Number: number}
}

func (s *sessions) find(id consensus.SessionID) *session { return s.byID[id] }

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

func (s *sessions) add(id consensus.SessionID, slot uint32) *session {
	invariant.True(s.byID[id] == nil, "session %v is opened twice", id)
	one := &session{id: id, slot: slot, seen: map[uint64]*chunkOfSeen{}}
	s.byID[id] = one
	s.byMember[id.Member] = append(s.byMember[id.Member], one)
	return one
}

func (s *sessions) remove(one *session) {
	one.gone = true
	delete(s.byID, one.id)
	list := slices.DeleteFunc(s.byMember[one.id.Member], func(other *session) bool { return other == one })
	if len(list) == 0 {
		delete(s.byMember, one.id.Member)
	} else {
		s.byMember[one.id.Member] = list
	}
}

// maxRowBytes bounds a row of the table of results. Only transactions of many operations come to it.
const maxRowBytes = 512

// keepResult puts the result of a proposal into the table: without the keys and values that history has, and the same bytes
// on every member, whoever answers.
func (m *Machine) keepResult(s *session, sequence uint64, res *kv.Result) {
	b := &m.batch
	b.row = appendOutcomeRow(b.row[:0], s.slot, sequence)
	if !b.answer.asked {
		b.value = res.Append(b.value[:0])
	}
	if b.answer.asked || len(b.value) > maxRowBytes && res.Txn != nil {
		kept := b.answer.kept(res)
		b.value = kept.Append(b.value[:0])
	}
	b.w.Set(b.row, b.value)
	s.note(sequence)
	m.charge(s, int64(len(b.row)+len(b.value)))
}

// charge counts bytes of the table of results.
func (m *Machine) charge(s *session, bytes int64) {
	s.bytes += bytes
	m.kept.Add(bytes)
}

// firstResult answers an entry whose proposal has been applied before.
func (m *Machine) firstResult(s *session, id consensus.ProposalID, res *kv.Result) error {
	row, found := m.batch.w.GetRaw(appendOutcomeRow(nil, s.slot, id.Sequence))
	if err := m.batch.w.Err(); err != nil {
		return fmt.Errorf("apply: read the result of %v: %w", id, err)
	}
	invariant.True(found, "proposal %v is known and has a result", id)
	var err error
	if *res, err = kv.DecodeResult(row); err != nil {
		return fmt.Errorf("apply: read the result of %v: %w", id, err)
	}
	return nil
}

// Result returns the result of a proposal, if an entry of it has been applied and its session is not retired.
func (m *Machine) Result(id consensus.ProposalID) (kv.Result, bool, error) {
	m.sessionMu.Lock()
	s := m.sessions.find(id.Session)
	known := s != nil && s.has(id.Sequence)
	var slot uint32
	if known {
		slot = s.slot
	}
	m.sessionMu.Unlock()
	if !known {
		return kv.Result{}, false, nil
	}
	// Not found: noted by an Apply that has not committed, or retired since.
	row, found, err := m.engine.Get(appendOutcomeRow(nil, slot, id.Sequence))
	if err != nil || !found {
		return kv.Result{}, false, err
	}
	res, err := kv.DecodeResult(row)
	return res, err == nil, err
}

// Fate tells what is known of a proposal's end. done: an entry of it was applied, which decided its result, if not yet
// visibly. retired: its session takes no proposals and never will, so none of it will be executed from now on; it may have
// been before. Neither is true of a proposal that may still come, nor while this member has not applied the opening of its
// session. What Fate says of an entry that is being applied is as certain as the log.
func (m *Machine) Fate(id consensus.ProposalID) (done, retired bool) {
	if id.IsZero() {
		return false, false
	}
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	if s := m.sessions.find(id.Session); s != nil {
		return s.has(id.Sequence), false
	}
	return false, !m.mayOpen(id.Session)
}

// SessionOpen reports whether proposals of a session are taken.
func (m *Machine) SessionOpen(id consensus.SessionID) bool {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	return m.sessions.find(id) != nil
}

// openFor returns the session of an entry that opens it, nil if the entry is something else or may not.
func (m *Machine) openFor(e *consensus.Entry, cmd *kv.Command) *session {
	op := cmd.SessionOpen
	if op == nil || sessionID(op.Member, op.Number) != e.Proposal.Session || !m.mayOpen(e.Proposal.Session) {
		return nil
	}
	return m.open(e.Proposal.Session)
}

// mayOpen refuses what would bring back the dead: all sessions of removed members, and those that are not beyond every
// session of their member so far. An open that was delayed in the network until then would otherwise let its proposals
// be applied a second time, and end the sessions that came after it.
func (m *Machine) mayOpen(id consensus.SessionID) bool {
	if id.OfClient() {
		return m.clientMayOpen(id)
	}
	_, removed := m.Removed(id.Member)
	return !removed && id.Number > m.sessions.highest[id.Member]
}

// noteNumber keeps the highest number of a member's sessions. Numbers only grow, so that one row stands for all of them.
func (m *Machine) noteNumber(id consensus.SessionID) {
	if id.OfClient() {
		if m.sessions.find(id) == nil {
			return // only what was open and ends counts
		}
		id.Member = retiredClients
	}
	if _, removed := m.Removed(id.Member); removed || id.Number <= m.sessions.highest[id.Member] {
		return
	}
	m.sessions.highest[id.Member] = id.Number
	m.batch.w.Set(memberRow(rowHighest, id.Member), binary.AppendUvarint(nil, id.Number))
}

func (m *Machine) open(id consensus.SessionID) *session {
	slot := m.sessions.nextSlot
	m.sessions.nextSlot++
	invariant.True(m.sessions.nextSlot != 0, "a slot is left for session %v", id)
	w := m.batch.w
	w.Set(rowNextSlot, binary.AppendUvarint(nil, uint64(m.sessions.nextSlot)))
	w.Set(sessionRow(rowOpen, id), binary.AppendUvarint(nil, uint64(slot)))
	m.noteNumber(id)
	return m.sessions.add(id, slot)
}

// openSession does a SessionOpen: it opens the session unless openFor did, and retires the member's others.
func (m *Machine) openSession(op *kv.SessionOpenOp) error {
	id := sessionID(op.Member, op.Number)
	if m.sessions.find(id) == nil {
		if !m.mayOpen(id) {
			return kv.ErrSessionUnknown
		}
		m.open(id)
	}
	for _, other := range slices.Clone(m.sessions.byMember[id.Member]) {
		if other.id != id && other.id.OfClient() == id.OfClient() && !slices.Contains(op.Keep, other.id.Number) {
			m.retireSession(other.id)
		}
	}
	return nil
}

// retireSession forgets the results of a session, and refuses its proposals from now on. One that is not open is
// refused as well, should its opening come late.
func (m *Machine) retireSession(id consensus.SessionID) {
	m.noteNumber(id)
	s := m.sessions.find(id)
	if s == nil {
		return
	}
	w := m.batch.w
	w.DeleteRaw(sessionRow(rowOpen, id))
	lower, upper := outcomeBounds(s.slot)
	w.DeleteRawRange(lower, upper)
	m.charge(s, -s.bytes)
	m.sessions.remove(s)
}

func (m *Machine) loadSessions() error {
	m.sessions = sessions{
		byID: map[consensus.SessionID]*session{}, byMember: map[consensus.MemberID][]*session{},
		highest: map[consensus.MemberID]uint64{},
	}
	if row, found, err := m.engine.Get(rowNextSlot); err != nil {
		return fmt.Errorf("apply: read the next slot: %w", err)
	} else if found {
		next, err := decodeNumber("next slot", row)
		if err != nil {
			return err
		}
		m.sessions.nextSlot = uint32(next)
	}
	err := scan(m.engine, []byte{tableState, rowHighest}, func(rest, value []byte) error {
		number, err := decodeNumber("highest session", value)
		if err != nil || len(rest) != 8 {
			return fmt.Errorf("%w: highest session %x", ErrCorruptRow, rest)
		}
		m.sessions.highest[consensus.MemberID(binary.BigEndian.Uint64(rest))] = number
		return nil
	})
	if err != nil {
		return err
	}
	bySlot := map[uint32]*session{}
	var opened []*session
	err = scan(m.engine, []byte{tableState, rowOpen}, func(rest, value []byte) error {
		slot, err := decodeNumber("slot", value)
		if err != nil || len(rest) != 16 {
			return fmt.Errorf("%w: session %x", ErrCorruptRow, rest)
		}
		id := sessionID(binary.BigEndian.Uint64(rest), binary.BigEndian.Uint64(rest[8:]))
		opened = append(opened, &session{id: id, slot: uint32(slot)})
		return nil
	})
	if err != nil {
		return err
	}
	// In the order of opening, as on a member that did not restart.
	slices.SortFunc(opened, func(a, b *session) int { return int(int64(a.slot) - int64(b.slot)) })
	for _, s := range opened {
		bySlot[s.slot] = m.sessions.add(s.id, s.slot)
	}
	return scan(m.engine, []byte{tableOutcome}, func(rest, value []byte) error {
		if len(rest) != 12 || bySlot[binary.BigEndian.Uint32(rest)] == nil {
			return fmt.Errorf("%w: result %x of no session", ErrCorruptRow, rest)
		}
		s := bySlot[binary.BigEndian.Uint32(rest)]
		s.note(binary.BigEndian.Uint64(rest[4:]))
		m.charge(s, int64(1+len(rest)+len(value)))
		return nil
	})
}
