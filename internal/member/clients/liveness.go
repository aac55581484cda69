package clients

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

const (
	// DefaultClientPatience is how long a native client may be silent before its sessions are retired.
	DefaultClientPatience = time.Minute
	// clientScanParts is the number of scans within the patience. At each scan a member reports its clients to the leader, and
	// the leader looks for silent ones.
	clientScanParts = 20
	// MaxHeardClients bounds the clients whose last contact the leader remembers, with or without a session, and the ids that a
	// member sends it in one message.
	MaxHeardClients = 8 * maxClientSessions
	// maxClientRetires bounds the sessions that one scan retires.
	maxClientRetires = 200
)

// liveness records the last contact of native clients. Only the leader's record counts. A new leader starts with an empty one,
// so that every client has the full patience again.
type liveness struct {
	mu    sync.Mutex
	fresh map[consensus.MemberID]struct{}  // this member received something from them since the last scan
	heard map[consensus.MemberID]time.Time // last contact with any member, as far as the leader knows
	since time.Time                        // the last look at the leader's record
}

// KeepClient records that this member received something from a native client.
func (c *Clients) KeepClient(client consensus.MemberID) { c.alive.add(client) }

// ClientPatience is how long a native client may be silent before its sessions are retired.
func (c *Clients) ClientPatience() time.Duration {
	if c.options.Patience > 0 {
		return c.options.Patience
	}
	return DefaultClientPatience
}

func (r *liveness) add(clients ...consensus.MemberID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh == nil {
		r.fresh = map[consensus.MemberID]struct{}{}
	}
	for _, id := range clients {
		if _, known := r.fresh[id]; known || len(r.fresh) < MaxHeardClients {
			r.fresh[id] = struct{}{}
		}
	}
}

func (r *liveness) takeFresh() []consensus.MemberID {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := make([]consensus.MemberID, 0, len(r.fresh))
	for id := range r.fresh {
		fresh = append(fresh, id)
	}
	clear(r.fresh)
	return fresh
}

// forget empties the leader's record. A member calls it when it does not lead.
func (r *liveness) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.heard)
	r.since = time.Time{}
}

// note records, at the leader, the last contact of clients that a member reports.
func (r *liveness) note(clients []consensus.MemberID, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard == nil {
		r.heard = map[consensus.MemberID]time.Time{}
	}
	for _, id := range clients {
		if _, known := r.heard[id]; known || len(r.heard) < MaxHeardClients {
			r.heard[id] = at
		}
	}
}

// silent returns the open sessions whose clients have been silent for patience or longer, and keeps what it knows of clients of
// open sessions, and of those heard lately, which may be opening one. For a client that this leader does not know yet, the time
// starts now.
func (r *liveness) silent(open []consensus.SessionID, now time.Time, patience time.Duration) []consensus.SessionID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.since.IsZero() && now.Sub(r.since) >= patience/2 {
		clear(r.heard) // the process stood still, and its clients may have waited for it
	}
	r.since = now
	kept := make(map[consensus.MemberID]time.Time, len(open))
	for _, session := range open {
		last, known := r.heard[session.Member]
		if !known {
			last = now
		}
		kept[session.Member] = last
	}
	for id, last := range r.heard {
		if now.Sub(last) < patience {
			kept[id] = last
		}
	}
	r.heard = kept
	return r.silentOf(open, now, patience)
}

// silentOf returns those of the sessions whose clients have been silent for patience or longer. The lock is held.
func (r *liveness) silentOf(
	sessions []consensus.SessionID, now time.Time, patience time.Duration,
) (silent []consensus.SessionID) {
	for _, session := range sessions {
		_, fresh := r.fresh[session.Member]
		if last, known := r.heard[session.Member]; known && !fresh && now.Sub(last) >= patience {
			silent = append(silent, session)
		}
	}
	return silent
}

// stillSilent is silentOf for sessions that silent returned.
func (r *liveness) stillSilent(sessions []consensus.SessionID, now time.Time, patience time.Duration) []consensus.SessionID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.silentOf(sessions, now, patience)
}

// Watch scans until ctx ends, and retires the sessions of silent clients.
func (c *Clients) Watch(ctx context.Context) error {
	ticker := time.NewTicker(c.ScanInterval())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.retireSilent(c.Scan())
		case <-ctx.Done():
			return nil
		}
	}
}

// ScanInterval is how often Scan is to be called.
func (c *Clients) ScanInterval() time.Duration { return c.ClientPatience() / clientScanParts }

// Scan reports this member's clients to the leader. The leader returns sessions whose clients have been silent for too long.
// Before they are retired a quorum must confirm that it still leads, and then StillSilent must be asked.
func (c *Clients) Scan() (silent []consensus.SessionID) {
	fresh, leader := c.alive.takeFresh(), c.member.Leader()
	if leader != c.options.ID {
		c.alive.forget()
		if len(fresh) > 0 && c.member.TellHeard(leader, fresh) != nil {
			c.alive.add(fresh...)
		}
		return nil
	}
	c.Heard(fresh)
	machine, release := c.member.Machine()
	open := machine.ClientSessions()
	release()
	silent = c.alive.silent(open, c.options.Clock.Now(), c.ClientPatience())
	return silent[:min(len(silent), maxClientRetires)]
}

// StillSilent returns those of the sessions that Scan returned which may be retired now. A deposed leader must not retire any:
// it knows only its old record, and the clients report to its successor.
func (c *Clients) StillSilent(sessions []consensus.SessionID) []consensus.SessionID {
	if c.member.Leader() != c.options.ID {
		return nil
	}
	return c.alive.stillSilent(sessions, c.options.Clock.Now(), c.ClientPatience())
}

// Heard records, at the leader, the clients that a member reports.
func (c *Clients) Heard(clients []consensus.MemberID) { c.alive.note(clients, c.options.Clock.Now()) }

// LastHeard returns the time of the last contact with a client, as far as this member knows while it leads; else the zero time.
func (c *Clients) LastHeard(client consensus.MemberID) time.Time {
	c.alive.mu.Lock()
	defer c.alive.mu.Unlock()
	return c.alive.heard[client]
}

// retireSilent retires sessions that Scan returned.
func (c *Clients) retireSilent(silent []consensus.SessionID) {
	if len(silent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.options.Stopping, retirePatience)
	defer cancel()
	if err := c.member.ReadIndex(ctx); err != nil {
		return
	}
	var retired sync.WaitGroup
	for _, session := range c.StillSilent(silent) {
		retired.Go(func() { c.retireClientSession(ctx, session) })
	}
	retired.Wait()
}
