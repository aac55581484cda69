package member

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

const (
	// DefaultClientPatience is for how long nobody may have heard a native client before its sessions are retired.
	DefaultClientPatience = time.Minute
	// clientScanParts is how often, within the patience, a member tells the leader which clients it heard, and the leader
	// looks for those that nobody heard.
	clientScanParts = 20
	// maxHeardClients bounds what the leader knows of clients, most of whom have no session yet or no more.
	maxHeardClients = 8 * maxClientSessions
	// maxClientRetires bounds what one scan proposes.
	maxClientRetires = 200
)

// methodClients tells the leader which native clients a member heard.
const methodClients = "clients.heard"

// roll notes which native clients are there. Only the leader's counts, and it begins anew with each leader: then every client
// has all of its time again.
type roll struct {
	mu    sync.Mutex
	fresh map[consensus.MemberID]struct{}  // heard here since the last scan
	heard map[consensus.MemberID]time.Time // by any member, as the leader knows
}

// KeepClient notes that a native client was heard here.
func (m *Member) KeepClient(client consensus.MemberID) { m.roll.add(client) }

// ClientPatience is for how long a native client may be silent before its sessions are retired.
func (m *Member) ClientPatience() time.Duration {
	if m.options.ClientPatience > 0 {
		return m.options.ClientPatience
	}
	return DefaultClientPatience
}

func (r *roll) add(clients ...consensus.MemberID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh == nil {
		r.fresh = map[consensus.MemberID]struct{}{}
	}
	for _, id := range clients {
		r.fresh[id] = struct{}{}
	}
}

func (r *roll) takeFresh() []consensus.MemberID {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := make([]consensus.MemberID, 0, len(r.fresh))
	for id := range r.fresh {
		fresh = append(fresh, id)
	}
	clear(r.fresh)
	return fresh
}

// forget begins anew: this member does not lead.
func (r *roll) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.heard)
}

// note takes the word of a member, at the leader.
func (r *roll) note(clients []consensus.MemberID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard == nil {
		r.heard = map[consensus.MemberID]time.Time{}
	}
	for _, id := range clients {
		if _, known := r.heard[id]; known || len(r.heard) < maxHeardClients {
			r.heard[id] = at
		}
	}
}

// silent returns those of the open sessions whose client was not heard for as long as patience. The clock of a client that
// is new to this leader begins now.
func (r *roll) silent(open []consensus.SessionID, now time.Time, patience time.Duration) []consensus.SessionID {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[consensus.MemberID]time.Time, len(open))
	var silent []consensus.SessionID
	for _, session := range open {
		last, known := r.heard[session.Member]
		if !known {
			last = now
		}
		kept[session.Member] = last
		if now.Sub(last) >= patience {
			silent = append(silent, session)
		}
	}
	for id, last := range r.heard { // whose session is about to be opened
		if now.Sub(last) < patience {
			kept[id] = last
		}
	}
	r.heard = kept
	return silent
}

// watchClients is the goroutine that tells the leader which clients were heard here, or that ends, on the leader, the
// sessions of those that nobody heard. A session ends only by a log entry, the same on every member.
func (m *Member) watchClients() error {
	return lookEvery(m.stopping, m.ClientPatience()/clientScanParts, func() {
		fresh, leader := m.roll.takeFresh(), m.Leader()
		if leader == m.ID() {
			m.roll.note(fresh, m.options.Clock.Now())
			m.retireSilent()
			return
		}
		m.roll.forget()
		if len(fresh) > 0 && m.tellHeard(leader, fresh) != nil {
			m.roll.add(fresh...)
		}
	})
}

func (m *Member) tellHeard(leader consensus.MemberID, heard []consensus.MemberID) error {
	if leader == consensus.NoMember {
		return ErrNoLeader
	}
	body, err := json.Marshal(heard)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(m.stopping, m.electionTimeout())
	defer cancel()
	_, err = m.transport.Call(ctx, leader, methodClients, body)
	return err
}

// answerHeard takes the word of another member about its clients.
func (m *Member) answerHeard(body []byte) ([]byte, error) {
	var heard []consensus.MemberID
	if err := json.Unmarshal(body, &heard); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if m.Leader() != m.ID() {
		return nil, toStatus(ErrNotLeader)
	}
	m.roll.note(heard, m.options.Clock.Now())
	return []byte("{}"), nil
}

// retireSilent retires the sessions of clients that nobody heard for too long.
func (m *Member) retireSilent() {
	machine, release := m.Machine()
	open := machine.ClientSessions()
	release()
	silent := m.roll.silent(open, m.options.Clock.Now(), m.ClientPatience())
	if len(silent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
	defer cancel()
	// One that leads no more without knowing would go by what it heard, while its successor hears the clients.
	if err := m.ReadIndex(ctx); err != nil || m.Leader() != m.ID() {
		return
	}
	silent = silent[:min(len(silent), maxClientRetires)]
	done := make(chan struct{}, len(silent))
	for _, session := range silent {
		go func() {
			m.retireClientSession(ctx, session)
			done <- struct{}{}
		}()
	}
	for range silent {
		<-done
	}
}

// RetireClientSession has a session retired of which the client says that it knows all results. It does not wait for it: if
// that fails, the client's next session ends this one.
func (m *Member) RetireClientSession(session consensus.SessionID) {
	if m.stopping.Err() != nil || !m.retiring.begin(session, m.sessionOpen(session)) {
		return
	}
	m.background(func() {
		defer m.retiring.end(session)
		ctx, cancel := context.WithTimeout(m.stopping, promotePatience)
		defer cancel()
		if m.awaitStart(ctx) == nil {
			m.retireClientSession(ctx, session)
		}
	})
}

func (m *Member) sessionOpen(session consensus.SessionID) bool {
	machine, release := m.Machine()
	defer release()
	return machine.SessionOpen(session)
}

// retiring are the sessions whose end is on its way because their clients asked for it. There are no more of them than open
// sessions, however often the clients ask, nor entries of the log for what is not open.
type retiring struct {
	mu       sync.Mutex
	sessions map[consensus.SessionID]struct{}
}

// begin reports whether somebody has to propose the end of a session now.
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

func (m *Member) retireClientSession(ctx context.Context, session consensus.SessionID) {
	command := kv.Command{SessionRetire: &kv.SessionRetireOp{Member: uint64(session.Member), Number: session.Number}}
	if _, err := m.Propose(ctx, &command); err != nil && m.stopping.Err() == nil && !errors.Is(err, context.Canceled) {
		m.logger.Debug("could not retire the session of a client yet", "client", session.Member.String(), "err", err)
	}
}
