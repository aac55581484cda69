package clients

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member/proposals"
)

// ErrClientID means that a client's random id is that of a present or former member.
var ErrClientID = errors.New("member: this id is taken by a member of the cluster: draw another one for the client")

// ErrClientSession means that a client names a session number far beyond those that were opened.
var ErrClientSession = errors.New("member: there was no such session: the client names a later one than there can be")

// ClientSessionLength is how many proposals a session of a native client may number.
const ClientSessionLength = proposals.SessionLength

// maxClientAhead bounds by how much a client's last session number may exceed those that this member knows. It is more than are
// opened while the member lags, and so few that clients with false numbers do not exhaust the numbers, which all clients share.
const maxClientAhead = 1 << 24

// retirePatience bounds one attempt to retire sessions.
const retirePatience = 5 * time.Second

// maxClientSessions bounds the replicated table of results: the member opens no more sessions of native clients than that.
const maxClientSessions = 10_000

// sessionBytes is the memory of an open session, with a bit for each of its proposals. Its results are on disk.
const sessionBytes = 2 << 10

// maxOpening bounds the sessions that a member opens at once: the bound on all sessions does not count those.
const maxOpening = 32

// OpenClientSession opens a session for a native client, and retires its other sessions except those in keep. above is the
// number of the last session that the client was given, or zero. neighbours reports whether another client connects from the
// same host: the clients of one host may have as many sessions, of those that this member can tell, as are free for other
// hosts. Errors are ErrClientID, ErrClientSession, proposals.ErrTooMany, and those of a proposal.
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

// roomForSession reports whether a client may open one more session. No more than most sessions are open, and those of a host
// are no more than are free; a client that has a session may open its next one while they are up to twice as many.
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

// mostSessions returns how many sessions native clients may have open together: as many as fit the member with the least
// memory.
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

// RetireClientSession retires a session whose results the client knows. It returns at once. If the retirement fails, the
// opening of the client's next session retires the session.
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

// retiring holds the sessions whose retirement is being proposed at a client's request, so that a client that asks again, or
// names a session that is not open, adds no entry to the log.
type retiring struct {
	mu       sync.Mutex
	sessions map[consensus.SessionID]struct{}
}

// begin reports whether the caller must propose the retirement of a session now.
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
