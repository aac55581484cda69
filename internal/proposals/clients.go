package proposals

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Clients is the member's table of proposals that native clients named. A client that gets no answer proposes the same
// again, through any member, so that a proposal is here only while somebody waits for it here.
type Clients struct {
	mu        sync.Mutex
	open      map[consensus.ProposalID]*clientProposal
	queue     []*clientProposal // to be sent, in order
	refused   []*clientProposal // refused for want of a leader, to be queued again at the next tick
	ticks     uint64
	numbered  uint64
	openBytes int
}

// clientProposal is one command of a client on its way through this member.
type clientProposal struct {
	id       consensus.ProposalID
	payload  []byte
	done     []Completion // more than one if the client came back before its former stream was known to be dead
	order    uint64
	sentTick uint64
	waiting  bool
}

func (p *clientProposal) ended() bool { return len(p.done) == 0 }

// Add queues a command under its id, or joins those who wait for it already. The payload belongs to the table from now on. One
// that is sent already leaves again only if it stays without an answer.
func (c *Clients) Add(id consensus.ProposalID, payload []byte, done Completion, sent bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.open[id]; p != nil {
		p.done = append(p.done, done)
		return nil
	}
	if len(c.open) >= maxOpenProposals || c.openBytes+len(payload) > maxOpenBytes {
		return ErrTooMany
	}
	if c.open == nil {
		c.open = map[consensus.ProposalID]*clientProposal{}
	}
	c.numbered++
	p := &clientProposal{id: id, payload: payload, done: []Completion{done}, order: c.numbered}
	c.open[id] = p
	c.openBytes += len(payload)
	if p.sentTick = c.ticks; !sent {
		c.again(p)
	}
	return nil
}

// again queues a proposal that does not wait to be sent yet.
func (c *Clients) again(p *clientProposal) {
	if !p.waiting {
		p.waiting = true
		c.queue = append(c.queue, p)
	}
}

// Abandon forgets that done waits for a proposal. What was sent may still happen.
func (c *Clients) Abandon(id consensus.ProposalID, done Completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.open[id]
	if p == nil {
		return
	}
	if p.done = slices.DeleteFunc(p.done, func(d Completion) bool { return d == done }); p.ended() {
		c.forget(p)
	}
}

func (c *Clients) forget(p *clientProposal) {
	delete(c.open, p.id)
	c.openBytes -= len(p.payload)
}

func (c *Clients) Awaits(id consensus.ProposalID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id] != nil
}

// end completes a proposal.
func (c *Clients) end(p *clientProposal, result kv.Result, err error) {
	c.forget(p)
	waiting := p.done
	p.done = nil
	for _, done := range waiting {
		done.Complete(result, err)
	}
}

// Take appends what has to be sent now to dst, in order. counter is the member that counts who holds it, or none.
func (c *Clients) Take(dst []consensus.Proposal, tick uint64, counter consensus.MemberID) []consensus.Proposal {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.queue {
		if p.ended() || !p.waiting {
			continue
		}
		p.waiting, p.sentTick = false, tick
		dst = append(dst, consensus.Proposal{
			ID: p.id, Proposer: counter, Kind: consensus.EntryCommand, Payload: p.payload,
		})
	}
	clear(c.queue)
	c.queue = c.queue[:0]
	return dst
}

// Waiting reports whether take would send something.
func (c *Clients) Waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0
}

// Resend queues everything that was sent at or before tick, in order, to go out again.
func (c *Clients) Resend(tick uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var again []*clientProposal
	for _, p := range c.inOrder() {
		if !p.waiting && p.sentTick <= tick {
			p.waiting = true
			again = append(again, p)
		}
	}
	if len(again) > 0 {
		c.queue = append(again, c.queue...)
	}
}

// Refuse handles what the leader, or the core for want of one, refused. None of that is an end: the same command may be in
// the log by another copy of the message, so that only the log can tell.
func (c *Clients) Refuse(refusals []consensus.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range refusals {
		p := c.open[r.ID]
		if p == nil || p.waiting {
			continue
		}
		switch r.Reason {
		case consensus.ReasonNoLeader:
			p.waiting = true
			c.refused = append(c.refused, p)
		case consensus.ReasonStaleConfig:
			c.again(p)
		default: // it goes out again with resend
		}
	}
}

// Tick notes the time, and queues what was refused for want of a leader.
func (c *Clients) Tick(now uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks = now
	if len(c.refused) > 0 {
		c.queue = append(c.refused, c.queue...)
		c.refused = nil
	}
}

// Resolve completes the proposals among entries that were applied with results.
func (c *Clients) Resolve(entries []consensus.Entry, results []kv.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return
	}
	for i := range entries {
		if !entries[i].Proposal.Session.OfClient() {
			continue
		}
		switch p := c.open[entries[i].Proposal]; {
		case p == nil:
		case errors.Is(results[i].Err, kv.ErrSkipped):
			c.again(p) // it came too late for its revision and decides nothing: the next entry is not tied to any
		default:
			c.end(p, results[i], nil)
		}
	}
}

// Restored completes what a snapshot has applied in our stead.
func (c *Clients) Restored(table ResultTable) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.inOrder() {
		result, found, err := table.Result(p.id)
		switch {
		case err != nil:
			return err
		case found:
			c.end(p, result, nil)
		case p.id.Sequence != 0 && table.SessionEnded(p.id.Session):
			c.end(p, kv.Result{}, ErrSessionLost)
		}
	}
	return nil
}

// FailAll ends everything that waits, for a member that stops.
func (c *Clients) FailAll(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.inOrder() {
		c.end(p, kv.Result{}, err)
	}
	c.queue, c.refused = nil, nil
}

// inOrder returns what is open, in the order in which it came.
func (c *Clients) inOrder() []*clientProposal {
	return slices.SortedFunc(maps.Values(c.open), func(a, b *clientProposal) int { return cmp.Compare(a.order, b.order) })
}
