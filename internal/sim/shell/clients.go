package shell

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/lanes"
)

// Clients handles the requests of clients to a process. Callbacks are events of their own: a Node calls its completions while
// it holds locks.
type Clients struct {
	*Life
	requests *lanes.Requests
	revokes  func(id kv.LeaseID, renewing bool) // Options.Revokes
	leases   *expiry.Revoker
	recall   func(command *kv.Command, result *kv.Result) // reads again what a result left out

	renewals expiry.Batches
	term     func() consensus.Term
	asked    map[kv.LeaseID][]*asked // the renewals that wait here, the oldest first
}

// asked is when, and in which term of this leader, a renewal was asked for of a lease that had time left.
type asked struct {
	at   time.Duration
	term consensus.Term
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
	one := &asked{at: c.Now()}
	if remaining, _, err := c.leases.TimeToLive(id); err == nil && remaining > 0 {
		one.term = c.term()
	}
	c.asked[id] = append(c.asked[id], one)
	c.renew(c.renewals.Join([]kv.LeaseID{id}, func(renewed []lease.Renewal, err error) {
		c.asked[id] = slices.DeleteFunc(c.asked[id], func(a *asked) bool { return a == one })
		if len(c.asked[id]) == 0 {
			delete(c.asked, id)
		}
		if err == nil && errors.Is(renewed[0].Err, lease.ErrExpired) {
			c.ends(id, one, c.term())
		}
		if err == nil {
			done(renewed[0].TTLSeconds, renewed[0].Err)
		}
	}))
}

// ends tells the law what a leader ends in a term, or calls ended, while a renewal of it waits, or has waited until now.
func (c *Clients) ends(id kv.LeaseID, waiting *asked, term consensus.Term) {
	c.revokes(id, waiting.term == term && c.Now()-waiting.at >= longRenewal)
}

// renew sends a batch of renewals, and then those that came meanwhile.
func (c *Clients) renew(batch *expiry.Batch) {
	if batch == nil {
		return
	}
	c.Read(func() {
		renewed, err := c.leases.Renew(batch.IDs)
		c.renew(c.renewals.Answered(batch, renewed, err))
	})
}
