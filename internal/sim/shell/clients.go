package shell

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/node"
)

// Clients does what clients ask of a process. Callbacks are events of their own: a Node calls its completions while it holds
// locks.
type Clients struct {
	*Life
	node   *node.Node
	leases *expiry.Revoker
	put    func(inputs ...raft.Input)
	wake   func()
	recall func(command *kv.Command, result *kv.Result) // reads again what a result left out
}

// Propose proposes a command in the session of this member.
func (c *Clients) Propose(command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	forget, err := c.node.Propose(command, Completion(func(r kv.Result, err error) {
		c.After(0, func() { done(c.Whole(command, r, err)) })
	}))
	if err != nil {
		c.After(0, func() { done(kv.Result{}, err) })
		return func() {}
	}
	c.wake()
	return func() {
		if c.Runs() {
			forget()
		}
	}
}

// ProposeFor proposes a command for a native client, which has given it its id.
func (c *Clients) ProposeFor(
	id consensus.ProposalID, command *kv.Command, done func(kv.Result, error),
) (abandon func()) {
	told := &Answer{Tell: func(r kv.Result, err error) {
		c.After(0, func() { done(c.Whole(command, r, err)) })
	}}
	if err := c.node.ProposeFor(id, command, told); err != nil {
		c.After(0, func() { done(kv.Result{}, err) })
		return func() {}
	}
	c.wake()
	return func() { c.Abandon(id, told) }
}

// Abandon says that nobody waits for a native client's proposal any more.
func (c *Clients) Abandon(id consensus.ProposalID, told *Answer) {
	if c.Runs() {
		c.node.AbandonFor(id, told)
	}
}

// Offered takes a proposal that a native client offers to all voters. The leader answers it; told is nil at others, which keep
// a record.
func (c *Clients) Offered(message *consensus.Message, id consensus.ProposalID, command *kv.Command, told *Answer) {
	switch {
	case told == nil:
	case c.node.Replica().Leader() != c.ID:
		if err := c.node.ProposeFor(id, command, told); err != nil {
			told.Tell(kv.Result{}, err)
		}
		c.wake()
		return
	default:
		if err := c.node.ExpectFor(id, command, told); err != nil {
			told.Tell(kv.Result{}, err)
			return
		}
	}
	c.put(raft.Receive{Message: *message})
}

// Whole completes a result as whoever answers does. Of one whose history is gone the client learns nothing.
func (c *Clients) Whole(command *kv.Command, r kv.Result, err error) (kv.Result, error) {
	if err == nil && r.Left != nil && c.Serves() {
		c.recall(command, &r)
	}
	return Cut(r, err)
}

// Cut returns a result, or that it is gone if nobody can complete it.
func Cut(r kv.Result, err error) (kv.Result, error) {
	if err == nil && r.Left != nil {
		return kv.Result{}, kv.ErrResultGone
	}
	return r, err
}

// Change proposes a change of the configuration. It fails at once if it cannot be proposed.
func (c *Clients) Change(request consensus.ChangeRequest, done func(err error)) error {
	_, err := c.node.ChangeConfig(request, Completion(func(_ kv.Result, err error) { done(err) }))
	if err == nil {
		c.wake()
	}
	return err
}

// Read calls done once the state applied here shows everything that was acknowledged before.
func (c *Clients) Read(done func()) {
	c.node.Read(func() { c.After(0, done) })
	c.wake()
}

// RenewLease renews a lease once a quorum has confirmed that this member leads.
func (c *Clients) RenewLease(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	c.Read(func() {
		if ttl, err := c.leases.Extend(id); !expiry.Elsewhere(err) { // else a member asks elsewhere, until the client gives up
			done(ttl, err)
		}
	})
}
