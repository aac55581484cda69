package clients

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Native clients may propose on the fast path: they are proposers like members, with ids that no member has. A client
// offers a proposal to the leader and to all other voters at once, over its streams to them, and counts the verdicts.
// This file passes offers to the core, and verdicts to the clients' streams.

// Listener receives the messages of members to a native client. Hear must not block, and must not call the member.
type Listener interface {
	Hear(message consensus.Message)
}

// direct holds the listeners of native clients.
type direct struct {
	count     atomic.Int64 // number of listeners: at zero, messages are sent without a look at them
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

// hear passes a message to its client, and reports whether that client listens here.
func (d *direct) hear(m *consensus.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.listeners[m.To] {
		l.Hear(*m)
	}
	return len(d.listeners[m.To]) > 0
}

// ListenFor registers l for the messages to a client that offers proposals itself, until detach is called. The error is
// ErrClientID.
func (c *Clients) ListenFor(client consensus.MemberID, l Listener) (detach func(), err error) {
	if c.board.isMember(client) {
		return nil, ErrClientID
	}
	return c.direct.attach(client, l), nil
}

// ExpectFor is ProposeFor for a proposal that the caller offers to the core at once. If this member does not lead, the command
// is proposed as any other; then ExpectFor returns false, and the caller offers nothing.
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

// EncodeFor encodes a command of a client as a proposal, in the same way on every member. The error is proposals.ErrNoLeader
// before the member has started, or one of Member.EncodeCommand.
func (c *Clients) EncodeFor(id consensus.ProposalID, command *kv.Command) (p consensus.Proposal, err error) {
	p = consensus.Proposal{ID: id, Kind: consensus.EntryCommand}
	if c.member.Proposals() == nil {
		return p, proposals.ErrNoLeader
	}
	p.Payload, err = c.member.EncodeCommand(command)
	return p, err
}

// Offer passes an offer of a client to the core: of kind MsgFastPropose to the leader, or MsgRecord to another voter. The core
// handles it at the time in Due, unless that is zero. Term and Config are those that the client knows; Offer sets From and To.
// The ids of the proposals must be of sessions of the client. Offer blocks while the budget of offers is used up, until ctx
// ends.
func (c *Clients) Offer(ctx context.Context, client consensus.MemberID, message consensus.Message) {
	if c.address(client, &message) && c.offers.enter(ctx, &message) {
		c.receive(&message)
	}
}

// TryOffer is Offer that does not wait: it returns false while the budget is used up.
func (c *Clients) TryOffer(client consensus.MemberID, message consensus.Message) bool {
	if !c.address(client, &message) {
		return true
	}
	if !c.offers.tryEnter(&message) {
		return false
	}
	c.receive(&message)
	return true
}

// address makes a message that of a client to this member. False means that it is nothing for the core.
func (c *Clients) address(client consensus.MemberID, message *consensus.Message) bool {
	message.From, message.To = client, c.options.ID
	return len(message.Proposals) > 0 && !c.board.isMember(client) && c.member.Proposals() != nil
}

func (c *Clients) receive(message *consensus.Message) {
	if !c.member.Receive(*message) {
		c.offers.leave(message)
	}
}

// Deliver sends messages to other members, and to the native clients that listen here. Every message of the core that may be
// for a client must go through it.
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

// answersClient delivers a message if it is for a client that listens here. A proposal that the leader refused is proposed
// again by this member.
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

// ProposeFor queues a command under the id that a native client gave it. The goroutine that applies calls done once: with the
// result of the first entry of that id, with kv.ErrSessionUnknown in the result if this attempt did nothing because the session
// is not open, or with an error if the member cannot know the result. Until then, or until Abandon, the member proposes the
// command again.
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

// Proposed is one command of a client's message.
type Proposed struct {
	ID      consensus.ProposalID
	Command *kv.Command
	Done    proposals.Completion
}

// ProposeAllFor is ProposeFor for all commands of a message, in their order: the member's loop takes them together. refuse is
// called with the index and the error of each command that was not queued.
func (c *Clients) ProposeAllFor(commands []Proposed, refuse func(at int, why error)) {
	all := make([]proposals.OfClient, len(commands))
	for i := range commands {
		one := &commands[i]
		p, err := c.EncodeFor(one.ID, one.Command)
		all[i] = proposals.OfClient{ID: one.ID, Payload: p.Payload, Done: one.Done, Refused: err}
	}
	if table := c.member.Proposals(); table != nil {
		table.AddAllFor(all)
		c.member.Wake()
	}
	for i := range all {
		if all[i].Refused != nil {
			refuse(i, all[i].Refused)
		}
	}
}

// Abandon ends the wait of done for a client's proposal. A command that was sent may still be applied.
func (c *Clients) Abandon(id consensus.ProposalID, done proposals.Completion) {
	c.member.Proposals().AbandonFor(id, done)
}

// FirstResult returns the result of a client's proposal, if it has been applied here and its session is open.
func (c *Clients) FirstResult(id consensus.ProposalID) (kv.Result, bool) {
	machine, release := c.member.Machine()
	defer release()
	result, found, err := machine.Result(id)
	return result, found && err == nil
}

// Awaits reports whether a client's proposal has been proposed here, and a Completion waits for its result.
func (c *Clients) Awaits(id consensus.ProposalID) bool {
	table := c.member.Proposals()
	return table != nil && table.Awaits(id)
}

// Taken returns the bytes of the offers among inputs, which the core has taken, to the budget.
func (c *Clients) Taken(inputs []raft.Input) { c.offers.taken(inputs) }

// OfferedBytes returns how many bytes of native clients' offers wait for the core.
func (c *Clients) OfferedBytes() int { return c.offers.bytes() }
