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
	// window is the proposals from sequence past+1 on, each nil once its end is known. They end nearly in order, so that
	// it is hardly longer than what is unresolved.
	window []*Pending
	past   uint64
}

// name gives a proposal the next id of the current session; false while there is none.
func (s *sessions) name(p *Pending) bool {
	c := s.current
	if c == nil {
		return false
	}
	c.sequence++
	c.unresolved++
	c.window = append(c.window, p)
	p.ID = consensus.ProposalID{Session: c.id, Sequence: c.sequence}
	return true
}

// find returns the proposal with an id whose end is not known, nil if there is none.
func (s *sessions) find(id consensus.ProposalID) *Pending {
	if o := s.opening; o != nil && o.ID == id {
		return o
	}
	one := s.of(id.Session)
	if one == nil {
		return nil
	}
	if at := id.Sequence - one.past - 1; at < uint64(len(one.window)) {
		return one.window[at]
	}
	return nil
}

// settle notes that the end of a proposal is known.
func (s *sessions) settle(id consensus.ProposalID) {
	one := s.of(id.Session)
	if one == nil || id.Sequence == 0 {
		return
	}
	one.unresolved--
	one.window[id.Sequence-one.past-1] = nil
	for len(one.window) > 0 && one.window[0] == nil {
		one.window = one.window[1:]
		one.past++
	}
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
	id := s.opening.ID.Session
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
			Proposal: consensus.Proposal{
				ID:   consensus.ProposalID{Session: consensus.SessionID{Member: t.self, Number: t.sessions.number}},
				Kind: consensus.EntryCommand, Payload: command.Append(nil),
			},
			queue: &t.own, queued: true, uncounted: true,
		}
		t.sessions.opening = p
		t.own.pushFront(p)
		t.own.unsent = append([]*Pending{p}, t.own.unsent...) // before all that needs it
	}
	if command := t.sessions.retire(); command != nil {
		t.own.enqueue(&Pending{
			Proposal: consensus.Proposal{Kind: consensus.EntryCommand, Payload: command.Append(nil)},
			queue:    &t.own, uncounted: true, done: retired{&t.sessions, t.sessions.previous},
		})
	}
}
