package apply

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// sessionTable holds the open sessions, and the results of their proposals. A set of bits in memory says which proposals have a
// result, so that a new proposal, as nearly every one is, costs no look-up; the results are rows of the engine.
//
// The goroutine that calls Apply changes it, and holds mu meanwhile. Methods that take a rowWriter, and those that say so, are
// called with mu locked; the others lock it.
type sessionTable struct {
	engine  engine.Engine // for results that are committed
	members *memberTable  // removed members open no sessions
	kept    atomic.Int64  // bytes of all results

	mu       sync.Mutex
	byID     map[consensus.SessionID]*session
	byMember map[consensus.MemberID][]*session // in the order of opening
	highest  map[consensus.MemberID]uint64     // highest number of a session that was opened or retired
	nextSlot uint32

	forgets    bool       // only the first result of a pack counts: a negative control
	packing    []*session // those that have packs in the batch under way
	spare      []*pack
	row, value []byte // buffers of keep and flush
}

func newSessionTable(eng engine.Engine, members *memberTable) *sessionTable {
	return &sessionTable{
		engine: eng, members: members, byID: map[consensus.SessionID]*session{},
		byMember: map[consensus.MemberID][]*session{}, highest: map[consensus.MemberID]uint64{},
	}
}

func sessionID(member, number uint64) consensus.SessionID {
	return consensus.SessionID{Member: consensus.MemberID(member), Number: number}
}

// find returns an open session, nil if there is none of that id. mu is locked.
func (t *sessionTable) find(id consensus.SessionID) *session { return t.byID[id] }

func (t *sessionTable) add(id consensus.SessionID, slot uint32) *session {
	invariant.True(t.byID[id] == nil, "session %v is opened twice", id)
	one := &session{id: id, slot: slot, seen: map[uint64]*chunkOfSeen{}}
	t.byID[id] = one
	t.byMember[id.Member] = append(t.byMember[id.Member], one)
	return one
}

func (t *sessionTable) remove(one *session) {
	one.gone = true
	delete(t.byID, one.id)
	list := slices.DeleteFunc(t.byMember[one.id.Member], func(other *session) bool { return other == one })
	if len(list) == 0 {
		delete(t.byMember, one.id.Member)
	} else {
		t.byMember[one.id.Member] = list
	}
}

// isOpen reports whether a session takes proposals.
func (t *sessionTable) isOpen(id consensus.SessionID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(id) != nil
}

// ended reports whether a session is not open and never will be.
func (t *sessionTable) ended(id consensus.SessionID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(id) == nil && !t.mayOpen(id)
}

// orphans returns the open sessions of removed members, in no particular order.
func (t *sessionTable) orphans() []consensus.SessionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var orphans []consensus.SessionID
	for _, tomb := range t.members.tombstones() {
		for _, s := range t.byMember[tomb.Member] {
			orphans = append(orphans, s.id)
		}
	}
	return orphans
}

// mayOpen refuses all sessions of removed members, and those whose number is not above every session of their member so far. An
// open that was delayed in the network until then would otherwise let its proposals be applied a second time, and end the
// sessions that came after it. mu is locked.
func (t *sessionTable) mayOpen(id consensus.SessionID) bool {
	if id.OfClient() {
		return t.clientMayOpen(id)
	}
	_, removed := t.members.removed(id.Member)
	return !removed && id.Number > t.highest[id.Member]
}

// openFor returns the session that an entry opens, nil if the entry opens none or may not.
func (t *sessionTable) openFor(w rowWriter, e *consensus.Entry, cmd *kv.Command) *session {
	op := cmd.SessionOpen
	if op == nil || sessionID(op.Member, op.Number) != e.Proposal.Session || !t.mayOpen(e.Proposal.Session) {
		return nil
	}
	return t.open(w, e.Proposal.Session)
}

func (t *sessionTable) open(w rowWriter, id consensus.SessionID) *session {
	slot := t.nextSlot
	t.nextSlot++
	invariant.True(t.nextSlot != 0, "a slot is left for session %v", id)
	w.Set(rowNextSlot, binary.AppendUvarint(nil, uint64(t.nextSlot)))
	w.Set(sessionRow(rowOpen, id), binary.AppendUvarint(nil, uint64(slot)))
	t.noteNumber(w, id)
	return t.add(id, slot)
}

// noteNumber keeps the highest number of a member's sessions. Numbers only grow, so that one row stands for all of them.
func (t *sessionTable) noteNumber(w rowWriter, id consensus.SessionID) {
	if id.OfClient() {
		if t.find(id) == nil {
			return // only an open session that ends counts
		}
		id.Member = retiredClients
	}
	if _, removed := t.members.removed(id.Member); removed || id.Number <= t.highest[id.Member] {
		return
	}
	t.highest[id.Member] = id.Number
	w.Set(memberRow(rowHighest, id.Member), binary.AppendUvarint(nil, id.Number))
}

// forgetNumber drops the row of a removed member: its tombstone stands for all its retired sessions.
func (t *sessionTable) forgetNumber(w rowWriter, member consensus.MemberID) {
	if _, known := t.highest[member]; known {
		delete(t.highest, member)
		w.DeleteRaw(memberRow(rowHighest, member))
	}
}

// applyOpen executes a SessionOpen: it opens the session unless openFor did, and retires the member's others.
func (t *sessionTable) applyOpen(w rowWriter, op *kv.SessionOpenOp) error {
	id := sessionID(op.Member, op.Number)
	if t.find(id) == nil {
		if !t.mayOpen(id) {
			return kv.ErrSessionUnknown
		}
		t.open(w, id)
	}
	for _, other := range slices.Clone(t.byMember[id.Member]) {
		if other.id != id && other.id.OfClient() == id.OfClient() && !slices.Contains(op.Keep, other.id.Number) {
			t.retire(w, other.id)
		}
	}
	return nil
}

// retire forgets the results of a session, and refuses its proposals from now on. It also refuses a session that is not open,
// in case its opening comes late.
func (t *sessionTable) retire(w rowWriter, id consensus.SessionID) {
	t.noteNumber(w, id)
	s := t.find(id)
	if s == nil {
		return
	}
	w.DeleteRaw(sessionRow(rowOpen, id))
	if s.packed {
		lower, upper := packBounds(s.slot)
		w.DeleteRawRange(lower, upper)
	}
	t.dropPacks(s)
	t.charge(s, -s.bytes)
	t.remove(s)
}

func (t *sessionTable) load() error {
	if row, found, err := t.engine.Get(rowNextSlot); err != nil {
		return fmt.Errorf("apply: read the next slot: %w", err)
	} else if found {
		next, err := decodeNumber("next slot", row)
		if err != nil {
			return err
		}
		t.nextSlot = uint32(next)
	}
	err := scan(t.engine, []byte{tableState, rowHighest}, func(rest, value []byte) error {
		number, err := decodeNumber("highest session", value)
		if err != nil || len(rest) != 8 {
			return fmt.Errorf("%w: highest session %x", ErrCorruptRow, rest)
		}
		t.highest[consensus.MemberID(binary.BigEndian.Uint64(rest))] = number
		return nil
	})
	if err != nil {
		return err
	}
	var opened []*session
	err = scan(t.engine, []byte{tableState, rowOpen}, func(rest, value []byte) error {
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
	bySlot := map[uint32]*session{}
	for _, s := range opened {
		bySlot[s.slot] = t.add(s.id, s.slot)
	}
	return t.loadPacks(bySlot)
}
