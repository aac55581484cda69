package proposals

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// session is one exactly-once session. Its proposals form a queue by sequence: slots[i] has sequence first+i.
type session struct {
	id    consensus.SessionID
	first uint64
	slots []*Pending
}

func (s *session) find(sequence uint64) *Pending {
	if sequence < s.first || sequence-s.first >= uint64(len(s.slots)) {
		return nil
	}
	return s.slots[sequence-s.first]
}

// trim drops the resolved head, so that the queue is as long as what is unresolved.
func (s *session) trim() {
	n := 0
	for n < len(s.slots) && s.slots[n].committed {
		s.slots[n] = nil
		n++
	}
	s.slots = s.slots[n:]
	s.first += uint64(n)
	if len(s.slots) == 0 {
		s.slots = nil
	}
}

// turnSession opens the first session, a new one when the current is used up, and retires the finished one.
func (p *Own) turnSession() {
	usedUp := p.current != nil && p.current.first+uint64(len(p.current.slots)) > p.limit
	if p.opening == nil && (p.current == nil || usedUp && p.previous == nil) {
		p.openSession()
	}
	if p.previous == nil || p.retiring || p.opening != nil || len(p.previous.slots) > 0 {
		return
	}
	p.retiring = true
	command := kv.Command{SessionRetire: &kv.SessionRetireOp{
		Member: uint64(p.self), Number: p.previous.id.Number}}
	p.queue = append(p.queue, &Pending{
		kind: consensus.EntryCommand, payload: command.Append(nil), waiting: true, done: retired{p, p.previous},
	})
}

func (p *Own) openSession() {
	p.number++
	op := &kv.SessionOpenOp{Member: uint64(p.self), Number: p.number}
	if p.current != nil {
		op.Keep = []uint64{p.current.id.Number}
	}
	command := kv.Command{SessionOpen: op}
	p.opening = &Pending{
		id:      consensus.ProposalID{Session: consensus.SessionID{Member: p.self, Number: p.number}},
		kind:    consensus.EntryCommand,
		payload: command.Append(nil),
		waiting: true,
	}
	p.queue = append([]*Pending{p.opening}, p.queue...)
}

// retired completes the retire entry of a session; it runs with the Own's lock held.
type retired struct {
	p *Own
	s *session
}

func (r retired) Complete(kv.Result, error) {
	if r.p.previous == r.s {
		r.p.previous, r.p.retiring = nil, false
	}
}

// lost gives up a session that was retired without our doing: an opening from before the last restart arrived late.
// What was proposed under it may or may not have happened, and can not be repeated under another id.
func (p *Own) lost(s *session) {
	for _, q := range s.slots {
		if !q.committed {
			q.committed = true
			p.finish(q, kv.Result{}, ErrLeaderFailed)
		}
	}
	s.trim()
	if s == p.current {
		p.current = nil
		p.number += 1 << 32
	}
	if s == p.previous {
		p.previous, p.retiring = nil, false
	}
}

// opened makes the session that was just opened the current one. A number that the cluster has seen already (the
// data directory went back in time) is refused; a much larger one is tried next.
func (p *Own) opened(result kv.Result) {
	id := p.opening.id.Session
	p.opening.committed = true
	p.opening = nil
	if result.Err != nil {
		p.number += 1 << 32
		return
	}
	if p.current != nil { // else it was lost, and the one before it may still have to be finished
		p.previous = p.current
	}
	p.current = &session{id: id, first: 1}
	p.limit = SessionLength
}

func (p *Own) trimAll() {
	if p.current != nil {
		p.current.trim()
	}
	if p.previous != nil {
		p.previous.trim()
	}
}

func (p *Own) sessionOf(id consensus.SessionID) *session {
	switch {
	case p.current != nil && p.current.id == id:
		return p.current
	case p.previous != nil && p.previous.id == id:
		return p.previous
	}
	return nil
}
