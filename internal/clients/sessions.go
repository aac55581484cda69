package clients

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/memory"
	"github.com/quorate/quorate/internal/proposals"
)

// ErrClientID means that the random id of a client is that of a member.
var ErrClientID = errors.New("member: this id is taken by a member of the cluster: draw another one for the client")

// ErrClientSession means that a client names a session number beyond those that were ever opened.
var ErrClientSession = errors.New("member: there was no such session: the client names a later one than there can be")

// ClientSessionLength is how many proposals a session of a native client may number.
const ClientSessionLength = proposals.SessionLength

// maxClientAhead is by how much a client's last session number may exceed those that this member knows: more than are
// opened while the member lags, and so few that clients with false numbers do not exhaust the numbers, which all
// clients share.
const maxClientAhead = 1 << 24

// retirePatience bounds one attempt to end sessions.
const retirePatience = 5 * time.Second

// maxClientSessions bounds the replicated table of results: no more sessions of native clients are opened beyond it.
const maxClientSessions = 10_000

// sessionBytes is what an open session takes in memory, with a bit for each of its proposals. Its results lie on disk.
const sessionBytes = 2 << 10

// maxOpening is how many sessions a member opens at once. The bound on all sessions does not see those that are under way.
const maxOpening = 32

// OpenClientSession opens a session for a native client and retires its others but for those to keep. above is the
// number of the last session that the client was given, zero if it has had none. neighbours reports whether a client is of the
// same host: the sessions of one host, as far as its clients are here, are at most as many as are free for others.
func (c *Clients) OpenClientSession(
	ctx context.Context, client consensus.MemberID, above uint64, keep []uint64, neighbours func(consensus.MemberID) bool,
) (consensus.SessionID, error) {
	var none consensus.SessionID
	if err := c.member.AwaitStart(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.RequestTimeout)
	defer cancel()
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	opening := c.Opening(client, above, keep, neighbours)
	for {
		id, open, err := opening.Next()
		if err != nil {
			return none, err
		}
		result, err := c.member.Await(ctx, id, func(done proposals.Completion) error { return c.ProposeFor(id, open, done) })
		if session, again, err := opening.Ended(result, err); !again {
			return session, err
		}
	}
}

// Opening is the opening of a session under the first number that is free.
type Opening struct {
	clients    *Clients
	client     consensus.MemberID
	above      uint64
	keep       []uint64
	neighbours func(consensus.MemberID) bool
	session    consensus.SessionID
}

// Opening is OpenClientSession without its waits, on a member that has started.
func (c *Clients) Opening(
	client consensus.MemberID, above uint64, keep []uint64, neighbours func(consensus.MemberID) bool,
) *Opening {
	return &Opening{clients: c, client: client, above: above, keep: keep, neighbours: neighbours}
}

// Next returns what is to be proposed, and under which id.
func (o *Opening) Next() (consensus.ProposalID, *kv.Command, error) {
	session, err := o.clients.nextClientSession(o.client, o.above, o.neighbours)
	o.session = session
	open := &kv.Command{SessionOpen: &kv.SessionOpenOp{Member: uint64(o.client), Number: session.Number, Keep: o.keep}}
	return consensus.ProposalID{Session: session}, open, err
}

// Ended takes what came of it: a session, an error, or again: a session with this number or a later one has ended meanwhile,
// and Next tries another.
func (o *Opening) Ended(result kv.Result, err error) (session consensus.SessionID, again bool, _ error) {
	switch {
	case err != nil:
		return session, false, err
	case errors.Is(result.Err, kv.ErrSessionUnknown):
		return session, true, nil
	case result.Err != nil:
		return session, false, result.Err
	}
	o.clients.KeepClient(o.client)
	return o.session, false, nil
}

func (c *Clients) nextClientSession(
	client consensus.MemberID, above uint64, neighbours func(consensus.MemberID) bool,
) (consensus.SessionID, error) {
	machine, release := c.member.Machine()
	defer release()
	config, _ := machine.Config()
	if _, removed := machine.Removed(client); removed || config.Contains(client) || client == consensus.NoMember {
		return consensus.SessionID{}, ErrClientID
	}
	if !roomForSession(machine.ClientSessions(), c.mostSessions(machine), client, neighbours) {
		return consensus.SessionID{}, proposals.ErrTooMany
	}
	next := machine.NextClientSession(client, above)
	if next.ClientNumber() > machine.NextClientSession(client, 0).ClientNumber()+maxClientAhead {
		return consensus.SessionID{}, ErrClientSession
	}
	return next, nil
}

// roomForSession reports whether a client may open one more session. All have no more than most, and those of a host no more
// than are free; twice as many where a client that has a session opens the next one.
func roomForSession(
	open []consensus.SessionID, most int, client consensus.MemberID, neighbours func(consensus.MemberID) bool,
) bool {
	free, ofHost, again := most-len(open), 0, false
	for _, session := range open {
		again = again || session.Member == client
		if session.Member == client || neighbours(session.Member) {
			ofHost++
		}
	}
	if again {
		ofHost /= 2
	}
	return ofHost < free
}

// mostSessions is how many sessions native clients may have open together: as many as the member with the least memory admits.
func (c *Clients) mostSessions(machine *apply.Machine) int {
	most := int64(maxClientSessions)
	if c.options.SessionBytes > 0 {
		most = min(most, c.options.SessionBytes/sessionBytes)
	}
	if least, _ := machine.LeastMemory(); least > 0 {
		most = min(most, memory.Divide(least).State.Admits().Sessions/sessionBytes)
	}
	return int(most)
}

// RetireClientSession retires a session whose results the client knows. It does not wait: if that fails, opening the
// client's next session retires it.
func (c *Clients) RetireClientSession(session consensus.SessionID) {
	ended, begins := c.Retire(session)
	if !begins {
		return
	}
	c.member.Background(func() {
		defer ended()
		ctx, cancel := context.WithTimeout(c.options.Stopping, retirePatience)
		defer cancel()
		if c.member.AwaitStart(ctx) == nil {
			c.retireClientSession(ctx, session)
		}
	})
}

// Retire reports whether the end of a session must be proposed now: it is open, and no proposal of its end is under way. ended
// says that this one is not any more.
func (c *Clients) Retire(session consensus.SessionID) (ended func(), begins bool) {
	if c.options.Stopping.Err() != nil || !c.retiring.begin(session, c.sessionOpen(session)) {
		return nil, false
	}
	return func() { c.retiring.end(session) }, true
}

func (c *Clients) sessionOpen(session consensus.SessionID) bool {
	machine, release := c.member.Machine()
	defer release()
	return machine.SessionOpen(session)
}

// retiring has the sessions whose retirement is proposed because their clients asked for it, so that a client that asks
// again or names a session that is not open adds no entry to the log.
type retiring struct {
	mu       sync.Mutex
	sessions map[consensus.SessionID]struct{}
}

// begin reports whether the caller must propose the end of a session now.
func (r *retiring) begin(session consensus.SessionID, open bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.sessions[session]; known || !open {
		return false
	}
	if r.sessions == nil {
		r.sessions = map[consensus.SessionID]struct{}{}
	}
	r.sessions[session] = struct{}{}
	return true
}

func (r *retiring) end(session consensus.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, session)
}

// Retirement is the command that retires a session.
func Retirement(session consensus.SessionID) *kv.Command {
	return &kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(session.Member), Number: session.Number}}
}

func (c *Clients) retireClientSession(ctx context.Context, session consensus.SessionID) {
	_, err := c.member.Propose(ctx, Retirement(session))
	if err != nil && c.options.Stopping.Err() == nil && !errors.Is(err, context.Canceled) {
		c.options.Logger.Debug("could not retire the session of a client yet", "client", session.Member.String(), "err", err)
	}
}
