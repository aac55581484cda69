package proposals

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// SessionLength is how many proposals a session numbers. It bounds the result table: two sessions a member.
const SessionLength = 8192

// sessions are this member's exactly-once sessions. One is opened by a log entry before its first proposal, replaced when
// it has numbered as many proposals as it may, and retired by a log entry when all of them are resolved, which bounds the
// replicated table of results.
type sessions struct {
	self     consensus.MemberID
	length   uint64
	number   uint64   // of the one that was opened last
	current  *session // open, new proposals get their ids here; nil until the first is open
	previous *session // being finished
	opening  *Pending
	retiring bool // a retire entry of previous is on its way
}

// session is one of them.
type session struct {
	id         consensus.SessionID
	sequence   uint64 // of its last proposal
	unresolved int
}

// next returns the next id of the current session; false while there is none.
func (s *sessions) next() (consensus.ProposalID, bool) {
	if s.current == nil {
		return consensus.ProposalID{}, false
	}
	s.current.sequence++
	s.current.unresolved++
	return consensus.ProposalID{Session: s.current.id, Sequence: s.current.sequence}, true
}

// of returns the session with an id, if it is not over.
func (s *sessions) of(id consensus.SessionID) *session {
	switch {
	case s.current != nil && s.current.id == id:
		return s.current
	case s.previous != nil && s.previous.id == id:
		return s.previous
	}
	return nil
}

// opened makes the session that was just opened the current one. A number that the cluster has seen already (the data
// directory went back in time) is refused; a much larger one is tried next.
func (s *sessions) opened(granted bool) {
	id := s.opening.id.Session
	s.opening = nil
	if !granted {
		s.skip()
		return
	}
	if s.current != nil { // else it was lost, and the one before it may still have to be finished
		s.previous = s.current
	}
	s.current = &session{id: id}
}

// skip goes on with a much larger number than those that the cluster may have seen.
func (s *sessions) skip() { s.number += 1 << 32 }

// lose forgets a session that is over.
func (s *sessions) lose(id consensus.SessionID) {
	switch lost := s.of(id); {
	case lost == nil:
	case lost == s.current:
		s.current = nil
		s.skip()
	default:
		s.previous, s.retiring = nil, false
	}
}

// open returns the entry that opens the next session, if one is due.
func (s *sessions) open() *kv.Command {
	usedUp := s.current != nil && s.current.sequence >= s.length
	if s.opening != nil || s.current != nil && (!usedUp || s.previous != nil) {
		return nil
	}
	s.number++
	op := &kv.SessionOpenOp{Member: uint64(s.self), Number: s.number}
	if s.current != nil {
		op.Keep = []uint64{s.current.id.Number}
	}
	return &kv.Command{SessionOpen: op}
}

// retire returns the entry that retires the previous session, if that is due.
func (s *sessions) retire() *kv.Command {
	if s.previous == nil || s.retiring || s.opening != nil || s.previous.unresolved > 0 {
		return nil
	}
	s.retiring = true
	return &kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(s.self), Number: s.previous.id.Number}}
}

// retired completes the retire entry of a session; it runs with the table's lock held.
type retired struct {
	all *sessions
	one *session
}

func (r retired) Complete(kv.Result, error) {
	if r.all.previous == r.one {
		r.all.previous, r.all.retiring = nil, false
	}
}

// turnSession opens the first session, a new one when the current is used up, and retires the finished one.
func (t *Table) turnSession() {
	if command := t.sessions.open(); command != nil {
		p := &Pending{
			lane: &t.own, kind: consensus.EntryCommand, payload: command.Append(nil), queued: true, uncounted: true,
			id: consensus.ProposalID{Session: consensus.SessionID{Member: t.self, Number: t.sessions.number}},
		}
		t.sessions.opening = p
		t.named[p.id] = p
		t.own.pushFront(p)
		t.own.queue = append([]*Pending{p}, t.own.queue...) // before all that needs it
	}
	if command := t.sessions.retire(); command != nil {
		t.own.enqueue(&Pending{
			lane: &t.own, kind: consensus.EntryCommand, payload: command.Append(nil), uncounted: true,
			done: retired{&t.sessions, t.sessions.previous},
		})
	}
}
