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
	// clientScanParts is how many times within the patience a member tells the leader which clients it heard, and the
	// leader looks for silent ones.
	clientScanParts = 20
	// MaxHeardClients bounds how many clients the leader remembers, with or without a session, and how many ids a member
	// sends it in one message.
	MaxHeardClients = 8 * maxClientSessions
	// maxClientRetires bounds how many sessions one scan retires.
	maxClientRetires = 200
)

// liveness records when native clients were last heard. Only the leader's record counts. A new leader starts with an
// empty one, so that every client has the full patience again.
type liveness struct {
	mu    sync.Mutex
	fresh map[consensus.MemberID]struct{}  // heard here since the last scan
	heard map[consensus.MemberID]time.Time // by any member, as the leader knows
}

// KeepClient records that this member heard from a native client.
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

// forget empties the record: this member does not lead.
func (r *liveness) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.heard)
}

// note records, at the leader, clients that a member reports.
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

// silent returns the open sessions whose clients have been silent for longer than patience. For a client that this
// leader does not know yet the time starts now.
func (r *liveness) silent(open []consensus.SessionID, now time.Time, patience time.Duration) []consensus.SessionID {
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

// Watch tells the leader which clients were heard here or, on the leader, retires the sessions of silent clients. It
// returns when ctx ends.
func (c *Clients) Watch(ctx context.Context) error {
	ticker := time.NewTicker(c.ClientPatience() / clientScanParts)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.scan()
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Clients) scan() {
	fresh, leader := c.alive.takeFresh(), c.member.Leader()
	if leader == c.options.ID {
		c.Heard(fresh)
		c.retireSilent()
		return
	}
	c.alive.forget()
	if len(fresh) > 0 && c.member.TellHeard(leader, fresh) != nil {
		c.alive.add(fresh...)
	}
}

// Heard records, at the leader, the clients that a member reports as heard.
func (c *Clients) Heard(clients []consensus.MemberID) { c.alive.note(clients, c.options.Clock.Now()) }

// LastHeard returns when a client was heard last, as far as this member knows while it leads.
func (c *Clients) LastHeard(client consensus.MemberID) time.Time {
	c.alive.mu.Lock()
	defer c.alive.mu.Unlock()
	return c.alive.heard[client]
}

// retireSilent retires the sessions of clients that have been silent for too long.
func (c *Clients) retireSilent() {
	machine, release := c.member.Machine()
	open := machine.ClientSessions()
	release()
	silent := c.alive.silent(open, c.options.Clock.Now(), c.ClientPatience())
	if len(silent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.options.Stopping, retirePatience)
	defer cancel()
	// One that leads no more without knowing would go by what it heard, while its successor hears the clients.
	if err := c.member.ReadIndex(ctx); err != nil || c.member.Leader() != c.options.ID {
		return
	}
	silent = silent[:min(len(silent), maxClientRetires)]
	done := make(chan struct{}, len(silent))
	for _, session := range silent {
		go func() {
			c.retireClientSession(ctx, session)
			done <- struct{}{}
		}()
	}
	for range silent {
		<-done
	}
}
