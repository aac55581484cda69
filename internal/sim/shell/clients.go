package shell

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/node"
)

// Clients handles the requests of clients to a process. Callbacks are events of their own: a Node calls its completions while
// it holds locks.
type Clients struct {
	*Life
	node     *node.Node
	requests *lanes.Requests
	leases   *expiry.Revoker
	put      func(inputs ...raft.Input)
	wake     func()
	recall   func(command *kv.Command, result *kv.Result) // reads again the parts that a result left out

	renewals expiry.Batches

	data   *datadir.Data
	fast   bool                               // native clients may use the fast path
	native map[consensus.MemberID][]*listener // native clients that have made offers
}

// listener receives the core's messages to a native client.
type listener struct{ say func(m *consensus.Message) }

func (c *Clients) listen(client consensus.MemberID, l *listener) {
	c.native[client] = append(c.native[client], l)
}

func (c *Clients) ignore(client consensus.MemberID, l *listener) {
	c.native[client] = slices.DeleteFunc(c.native[client], func(other *listener) bool { return other == l })
}

// Deliver passes messages to a native client to its listeners here, if there are any.
func (c *Clients) Deliver(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		listeners := c.native[m.To]
		switch {
		case len(listeners) == 0:
		case m.Kind == consensus.MsgProposeReply:
			c.node.RefusedFor(m.Refusals)
			c.wake()
		case m.Kind == consensus.MsgRecorded || m.Kind == consensus.MsgFast:
			for _, l := range listeners {
				l.say(m)
			}
		}
	}
}

// Propose proposes a command in the session of this member.
func (c *Clients) Propose(command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	forget, err := c.requests.Propose(command, Completion(func(r kv.Result, err error) {
		c.After(0, func() { done(c.Whole(command, r, err)) })
	}))
	if err != nil {
		c.After(0, func() { done(kv.Result{}, err) })
		return func() {}
	}
	return func() {
		if c.Runs() {
			forget()
		}
	}
}

// Whole completes a result as a serving member does. If its history is gone, the client gets no result.
func (c *Clients) Whole(command *kv.Command, r kv.Result, err error) (kv.Result, error) {
	if err == nil && r.Left != nil && c.Serves() {
		c.recall(command, &r)
	}
	return Cut(r, err)
}

// Cut returns a result, or an error if a part of it is gone for good.
func Cut(r kv.Result, err error) (kv.Result, error) {
	if err == nil && r.Left != nil {
		return kv.Result{}, kv.ErrResultGone
	}
	return r, err
}

// Change proposes a change of the configuration. It returns an error if it cannot propose it.
func (c *Clients) Change(request consensus.ChangeRequest, done func(err error)) error {
	payload := consensus.AppendChangeRequest(nil, &request)
	_, err := c.requests.Start(consensus.EntryConfig, payload, Completion(func(_ kv.Result, err error) { done(err) }))
	return err
}

// Read calls done once the state applied here includes all writes that were acknowledged before. A read that times out is
// started again, as callers do.
func (c *Clients) Read(done func()) {
	_, err := c.requests.Read(Completion(func(_ kv.Result, err error) {
		c.After(0, func() {
			if err != nil {
				c.Read(done)
				return
			}
			done()
		})
	}))
	if err != nil {
		c.Suite.Report("harness", fmt.Sprintf("a member that runs serves no reads: %v", err))
	}
}

// RenewLease renews a lease once a quorum has confirmed that this member leads. If it does not lead, done is not called: a
// member asks elsewhere, until the client gives up.
func (c *Clients) RenewLease(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	c.renew(c.renewals.Join([]kv.LeaseID{id}, func(renewed []lease.Renewal, err error) {
		if err == nil {
			done(renewed[0].TTLSeconds, renewed[0].Err)
		}
	}))
}

// renew sends a batch of renewals, and then those that came meanwhile.
func (c *Clients) renew(batch *expiry.Batch) {
	if batch == nil {
		return
	}
	c.Read(func() {
		renewed, err := c.leases.Extend(batch.IDs)
		c.renew(c.renewals.Answered(batch, renewed, err))
	})
}
