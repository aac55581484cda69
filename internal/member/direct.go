package member

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/proposals"
)

// Native clients that propose on the fast path by themselves: they are proposers like members, under ids that no member has.
// They offer a proposal to the leader and to all other voters at once, over the streams that they have to each, and count
// the verdicts. This file takes what they offer to the core, and what the core says to them back to their streams.

// Listener is told what members say to a native client. It must not block, nor call the member.
type Listener interface {
	Hear(message consensus.Message)
}

// direct knows where native clients listen.
type direct struct {
	count     atomic.Int64 // of listeners: nothing is looked up while there are none
	mu        sync.Mutex
	listeners map[consensus.MemberID][]Listener
}

func (d *direct) attach(client consensus.MemberID, l Listener) (detach func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listeners == nil {
		d.listeners = map[consensus.MemberID][]Listener{}
	}
	d.listeners[client] = append(d.listeners[client], l)
	d.count.Add(1)
	return func() { d.detach(client, l) }
}

func (d *direct) detach(client consensus.MemberID, l Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := slices.DeleteFunc(d.listeners[client], func(other Listener) bool { return other == l })
	d.count.Add(int64(len(left) - len(d.listeners[client])))
	if d.listeners[client] = left; len(left) == 0 {
		delete(d.listeners, client)
	}
}

// hear passes a message on to a client; false if no such client listens here.
func (d *direct) hear(m *consensus.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.listeners[m.To] {
		l.Hear(*m)
	}
	return len(d.listeners[m.To]) > 0
}

// ListenFor makes l hear what this member says to a client that offers proposals by itself, until detach.
func (m *Member) ListenFor(client consensus.MemberID, l Listener) (detach func(), err error) {
	if m.isMember(client) {
		return nil, ErrClientID
	}
	return m.direct.attach(client, l), nil
}

// ExpectFor is ProposeFor for a proposal that Offer takes to the core at once. If this member does not lead, it is proposed
// as any other, and there is nothing to offer: then it returns false.
func (m *Member) ExpectFor(
	id consensus.ProposalID, command *kv.Command, done proposals.Completion,
) (consensus.Proposal, bool, error) {
	p, err := m.EncodeFor(id, command)
	if err != nil {
		return p, false, err
	}
	leads := m.Leader() == m.ID()
	if err := m.node.Proposals().AddFor(id, p.Payload, done, leads); err != nil {
		return p, false, err
	}
	if !leads {
		m.inbox.wake()
	}
	return p, leads, nil
}

// EncodeFor returns a command of a client as a proposal: the same on every member.
func (m *Member) EncodeFor(id consensus.ProposalID, command *kv.Command) (consensus.Proposal, error) {
	p := consensus.Proposal{ID: id, Kind: consensus.EntryCommand, Payload: command.Append(nil)}
	switch limit := m.options.MaxRequestBytes; {
	case !m.hasStarted():
		return p, ErrNoLeader
	case limit > 0 && len(p.Payload) > limit:
		return p, ErrTooLarge
	}
	return p, nil
}

// Offer gives the core what a client proposes on the fast path, kind MsgFastPropose, or asks it to hold, MsgRecord, when Round
// says that it is due. Term and Config are what the client believes; the rest is filled in. The ids of the proposals must be
// of sessions of the client. It waits while too much of what clients offered waits to be looked at.
func (m *Member) Offer(client consensus.MemberID, message consensus.Message) {
	if len(message.Proposals) == 0 || m.isMember(client) || !m.hasStarted() {
		return
	}
	message.From, message.To = client, m.ID()
	if !m.offers.enter(&message) {
		return
	}
	m.Receive([]consensus.Message{message})
}

// deliver takes messages to the other members, and to the native clients that listen here. Every message of the core that
// may be for a client leaves by it.
func (m *Member) deliver(messages []consensus.Message) {
	if m.direct.count.Load() == 0 {
		m.transport.Send(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if !m.answersClient(&messages[i]) {
			others = append(others, messages[i])
		}
	}
	if len(others) > 0 {
		m.transport.Send(others)
	}
}

// answersClient delivers a message if it is for a client that listens here. One that was refused goes on here as any other.
func (m *Member) answersClient(message *consensus.Message) bool {
	switch message.Kind {
	case consensus.MsgRecorded, consensus.MsgFast:
		return !m.isMember(message.To) && m.direct.hear(message)
	case consensus.MsgProposeReply:
		if m.isMember(message.To) || !m.direct.hear(message) {
			return false
		}
		m.node.RefusedFor(message.Refusals)
		m.inbox.wake()
		return true
	}
	return false
}
