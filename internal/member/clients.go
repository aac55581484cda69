package member

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/proposals"
)

var (
	// ErrSessionLost means that the session of a native client is gone, and that what was proposed under it may have
	// happened before.
	ErrSessionLost = proposals.ErrSessionLost
	// ErrClientID means that a client cannot have the id that it drew.
	ErrClientID = errors.New("member: this id is taken by a member of the cluster: draw another one for the client")
)

// ErrClientSession means that a client says it had a session that it cannot have had.
var ErrClientSession = errors.New("member: there was no such session: the client names a later one than there can be")

// ClientSessionLength is how many proposals a session of a native client may number.
const ClientSessionLength = proposals.SessionLength

// maxClientAhead is by how much a client's last session may be beyond those that this member knows: more than are ever opened
// while it lags, and so little that the row of numbers, which all clients share, outlasts those that lie.
const maxClientAhead = 1 << 32

// maxClientSessions bounds the replicated table of results: no more sessions of native clients are opened beyond it.
const maxClientSessions = 10_000

// ProposeFor is Node.ProposeFor for whoever serves native clients.
func (m *Member) ProposeFor(id consensus.ProposalID, command *kv.Command, done proposals.Completion) error {
	p, err := m.EncodeFor(id, command)
	if err == nil {
		err = m.node.Proposals().AddFor(id, p.Payload, done, false)
	}
	if err != nil {
		return err
	}
	m.inbox.wake()
	return nil
}

// Abandon ends the wait of done for a proposal of a client. What was sent may still happen.
func (m *Member) Abandon(id consensus.ProposalID, done proposals.Completion) {
	m.node.AbandonFor(id, done)
}

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
