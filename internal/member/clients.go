package member

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

var (
	// ErrSessionLost means that the session of a native client is gone, and that what was proposed under it may have
	// happened before.
	ErrSessionLost = errors.New("member: the client's session was retired; the command may or may not have happened")
	// ErrClientID means that a client cannot have the id that it drew.
	ErrClientID = errors.New("member: this id is taken by a member of the cluster: draw another one for the client")
)

// ErrClientSession means that a client says it had a session that it cannot have had.
var ErrClientSession = errors.New("member: there was no such session: the client names a later one than there can be")

// ClientSessionLength is how many proposals a session of a native client may number.
const ClientSessionLength = sessionLength

// maxClientAhead is by how much a client's last session may be beyond those that this member knows: more than are ever opened
// while it lags, and so little that the row of numbers, which all clients share, outlasts those that lie.
const maxClientAhead = 1 << 32

// maxClientSessions bounds the replicated table of results: no more sessions of native clients are opened beyond it.
const maxClientSessions = 10_000

// clients is the member's table of proposals that native clients named. A client that gets no answer proposes the same
// again, through any member, so that a proposal is here only while somebody waits for it here.
type clients struct {
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

// add queues a command under its id, or joins those who wait for it already. The payload belongs to the table from now on. One
// that is sent already leaves again only if it stays without an answer.
func (c *clients) add(id consensus.ProposalID, payload []byte, done Completion, sent bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.open[id]; p != nil {
		p.done = append(p.done, done)
		return nil
	}
	if len(c.open) >= maxOpenProposals || c.openBytes+len(payload) > maxOpenBytes {
		return ErrTooManyRequests
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
func (c *clients) again(p *clientProposal) {
	if !p.waiting {
		p.waiting = true
		c.queue = append(c.queue, p)
	}
}

// abandon forgets that done waits for a proposal. What was sent may still happen.
func (c *clients) abandon(id consensus.ProposalID, done Completion) {
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

func (c *clients) forget(p *clientProposal) {
	delete(c.open, p.id)
	c.openBytes -= len(p.payload)
}

func (c *clients) awaits(id consensus.ProposalID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id] != nil
}

// end completes a proposal.
func (c *clients) end(p *clientProposal, result kv.Result, err error) {
	c.forget(p)
	waiting := p.done
	p.done = nil
	for _, done := range waiting {
		done.Complete(result, err)
	}
}

// take appends what has to be sent now to dst, in order. counter is the member that counts who holds it, or none.
func (c *clients) take(dst []consensus.Proposal, tick uint64, counter consensus.MemberID) []consensus.Proposal {
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

// waiting reports whether take would send something.
func (c *clients) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0
}

// resend queues everything that was sent at or before tick, in order, to go out again.
func (c *clients) resend(tick uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var again []*clientProposal
	for _, p := range c.open {
		if !p.waiting && p.sentTick <= tick {
			p.waiting = true
			again = append(again, p)
		}
	}
	if len(again) > 0 {
		slices.SortFunc(again, func(a, b *clientProposal) int { return cmp.Compare(a.order, b.order) })
		c.queue = append(again, c.queue...)
	}
}

// refuse handles what the leader, or the core for want of one, refused. None of that is an end: the same command may be in
// the log by another copy of the message, so that only the log can tell.
func (c *clients) refuse(refusals []consensus.Refusal) {
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

// tick notes the time, and queues what was refused for want of a leader.
func (c *clients) tick(now uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks = now
	if len(c.refused) > 0 {
		c.queue = append(c.refused, c.queue...)
		c.refused = nil
	}
}

// resolve completes the proposals among entries that were applied with results.
func (c *clients) resolve(entries []consensus.Entry, results []kv.Result) {
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

// restored completes what a snapshot has applied in our stead.
func (c *clients) restored(table ResultTable) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.open {
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

// failAll ends everything that waits, for a member that stops.
func (c *clients) failAll(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.open {
		c.end(p, kv.Result{}, err)
	}
	c.queue, c.refused = nil, nil
}

// ProposeFor queues a command under the id that a native client gave it; it leaves with the next Step. done is told once, by
// the goroutine that applies, what came of it: the result of the first entry of that id, kv.ErrSessionUnknown in the result if
// this attempt did nothing because the session is not open, or an error of this package if the member cannot tell. The
// command is repeated until then, or until AbandonFor.
func (n *Node) ProposeFor(id consensus.ProposalID, command *kv.Command, done Completion) error {
	return n.clients.add(id, command.Append(nil), done, false)
}

// ExpectFor is ProposeFor for a proposal that reaches the core by a message of the client: it is repeated only if it stays
// without an end.
func (n *Node) ExpectFor(id consensus.ProposalID, command *kv.Command, done Completion) error {
	return n.clients.add(id, command.Append(nil), done, true)
}

// RefusedFor takes what the core says to a client of proposals that ExpectFor knows.
func (n *Node) RefusedFor(refusals []consensus.Refusal) { n.clients.refuse(refusals) }

// AbandonFor ends the wait of done for a proposal of a client. What was sent may still happen.
func (n *Node) AbandonFor(id consensus.ProposalID, done Completion) { n.clients.abandon(id, done) }

// ProposeFor is Node.ProposeFor for whoever serves native clients.
func (m *Member) ProposeFor(id consensus.ProposalID, command *kv.Command, done Completion) error {
	p, err := m.EncodeFor(id, command)
	if err == nil {
		err = m.node.clients.add(id, p.Payload, done, false)
	}
	if err != nil {
		return err
	}
	m.inbox.wake()
	return nil
}

// Abandon ends the wait of done for a proposal of a client. What was sent may still happen.
func (m *Member) Abandon(id consensus.ProposalID, done Completion) { m.node.AbandonFor(id, done) }

// FirstResult returns what a proposal of a client gave, if it has been applied here and its session is open.
func (m *Member) FirstResult(id consensus.ProposalID) (kv.Result, bool) {
	machine, release := m.Machine()
	defer release()
	result, found, err := machine.Result(id)
	return result, found && err == nil
}

// OpenClientSession opens a session for a native client and retires its others but for those to keep. above is the number of
// the last session that the client was given, zero if it has had none.
func (m *Member) OpenClientSession(
	ctx context.Context, client consensus.MemberID, above uint64, keep []uint64,
) (consensus.SessionID, error) {
	var none consensus.SessionID
	if err := m.awaitStart(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.options.RequestTimeout)
	defer cancel()
	for {
		session, err := m.nextClientSession(client, above)
		if err != nil {
			return none, err
		}
		result, err := m.proposeFor(ctx, consensus.ProposalID{Session: session}, &kv.Command{SessionOpen: &kv.SessionOpenOp{
			Member: uint64(client), Number: session.Number, Keep: keep,
		}})
		switch {
		case err != nil:
			return none, err
		case result.Err == nil:
			m.KeepClient(client)
			return session, nil
		case !errors.Is(result.Err, kv.ErrSessionUnknown):
			return none, result.Err
		}
		// Somebody's later session has ended meanwhile, and this member knows of it by now.
	}
}

func (m *Member) nextClientSession(client consensus.MemberID, above uint64) (consensus.SessionID, error) {
	machine, release := m.Machine()
	defer release()
	config, _ := machine.Config()
	if _, removed := machine.Removed(client); removed || config.Contains(client) || client == consensus.NoMember {
		return consensus.SessionID{}, ErrClientID
	}
	if len(machine.ClientSessions()) >= maxClientSessions {
		return consensus.SessionID{}, ErrTooManyRequests
	}
	next := machine.NextClientSession(client, above)
	if next.ClientNumber() > machine.NextClientSession(client, 0).ClientNumber()+maxClientAhead {
		return consensus.SessionID{}, ErrClientSession
	}
	return next, nil
}

// proposeFor is ProposeFor for a goroutine that waits.
func (m *Member) proposeFor(ctx context.Context, id consensus.ProposalID, command *kv.Command) (kv.Result, error) {
	w := &waiter{done: make(chan struct{}, 1)}
	if err := m.ProposeFor(id, command, w); err != nil {
		return kv.Result{}, err
	}
	begun := m.options.Clock.Now()
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		m.Abandon(id, w)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return kv.Result{}, m.timeoutError(begun)
		}
		return kv.Result{}, ctx.Err()
	case <-m.stopping.Done():
		m.Abandon(id, w)
		return kv.Result{}, ErrStopped
	}
}
