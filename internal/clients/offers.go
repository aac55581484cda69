package clients

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
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
func (c *Clients) ListenFor(client consensus.MemberID, l Listener) (detach func(), err error) {
	if c.board.isMember(client) {
		return nil, ErrClientID
	}
	return c.direct.attach(client, l), nil
}

// ExpectFor is ProposeFor for a proposal that Offer takes to the core at once. If this member does not lead, it is proposed
// as any other, and there is nothing to offer: then it returns false.
func (c *Clients) ExpectFor(
	id consensus.ProposalID, command *kv.Command, done proposals.Completion,
) (consensus.Proposal, bool, error) {
	p, err := c.EncodeFor(id, command)
	if err != nil {
		return p, false, err
	}
	leads := c.member.Leader() == c.options.ID
	if err := c.member.Proposals().AddFor(id, p.Payload, done, leads); err != nil {
		return p, false, err
	}
	if !leads {
		c.member.Wake()
	}
	return p, leads, nil
}

// EncodeFor returns a command of a client as a proposal: the same on every member.
func (c *Clients) EncodeFor(id consensus.ProposalID, command *kv.Command) (consensus.Proposal, error) {
	p := consensus.Proposal{ID: id, Kind: consensus.EntryCommand, Payload: command.Append(nil)}
	switch limit := c.options.MaxRequestBytes; {
	case c.member.Proposals() == nil:
		return p, proposals.ErrNoLeader
	case limit > 0 && len(p.Payload) > limit:
		return p, proposals.ErrTooLarge
	}
	return p, nil
}

// Offer gives the core what a client proposes on the fast path, kind MsgFastPropose, or asks it to hold, MsgRecord, when Due
// says that it is due. Term and Config are what the client believes; the rest is filled in. The ids of the proposals must be
// of sessions of the client. It waits while too much of what clients offered waits to be looked at.
func (c *Clients) Offer(client consensus.MemberID, message consensus.Message) {
	if len(message.Proposals) == 0 || c.board.isMember(client) || c.member.Proposals() == nil {
		return
	}
	message.From, message.To = client, c.options.ID
	if !c.offers.enter(&message) {
		return
	}
	c.member.Receive([]consensus.Message{message})
}

// Deliver takes messages to the other members, and to the native clients that listen here. Every message of the core that
// may be for a client leaves by it.
func (c *Clients) Deliver(messages []consensus.Message) {
	if c.direct.count.Load() == 0 {
		c.member.Send(messages)
		return
	}
	others := make([]consensus.Message, 0, len(messages))
	for i := range messages {
		if !c.answersClient(&messages[i]) {
			others = append(others, messages[i])
		}
	}
	if len(others) > 0 {
		c.member.Send(others)
	}
}

// answersClient delivers a message if it is for a client that listens here. One that was refused goes on here as any other.
func (c *Clients) answersClient(message *consensus.Message) bool {
	switch message.Kind {
	case consensus.MsgRecorded, consensus.MsgFast:
		return !c.board.isMember(message.To) && c.direct.hear(message)
	case consensus.MsgProposeReply:
		if c.board.isMember(message.To) || !c.direct.hear(message) {
			return false
		}
		c.member.Proposals().Refuse(message.Refusals)
		c.member.Wake()
		return true
	}
	return false
}

// ProposeFor queues a command under the id that a native client gave it. done is told once, by the goroutine that applies, what
// came of it: the result of the first entry of that id, kv.ErrSessionUnknown in the result if this attempt did nothing because
// the session is not open, or an error if the member cannot tell. The command is repeated until then, or until Abandon.
func (c *Clients) ProposeFor(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error {
	p, err := c.EncodeFor(id, command)
	if err == nil {
		err = c.member.Proposals().AddFor(id, p.Payload, done, false)
	}
	if err != nil {
		return err
	}
	c.member.Wake()
	return nil
}

// Abandon ends the wait of done for a proposal of a client. What was sent may still happen.
func (c *Clients) Abandon(id consensus.ProposalID, done proposals.Completion) {
	c.member.Proposals().AbandonFor(id, done)
}

// FirstResult returns what a proposal of a client gave, if it has been applied here and its session is open.
func (c *Clients) FirstResult(id consensus.ProposalID) (kv.Result, bool) {
	machine, release := c.member.Machine()
	defer release()
	result, found, err := machine.Result(id)
	return result, found && err == nil
}

// Taken makes room for the offers among inputs that the core takes.
func (c *Clients) Taken(inputs []raft.Input) { c.offers.taken(inputs) }

// OfferedBytes is how many bytes of offers of native clients wait to be looked at.
func (c *Clients) OfferedBytes() int { return c.offers.bytes() }
