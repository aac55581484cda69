package clients

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

const (
	// DefaultClientPatience is for how long nobody may have heard a native client before its sessions are retired.
	DefaultClientPatience = time.Minute
	// clientScanParts is how often, within the patience, a member tells the leader which clients it heard, and the leader
	// looks for those that nobody heard.
	clientScanParts = 20
	// MaxHeardClients bounds what the leader knows of clients, most of whom have no session yet or no more, and what a member
	// tells it at once.
	MaxHeardClients = 8 * maxClientSessions
	// maxClientRetires bounds what one scan proposes.
	maxClientRetires = 200
)

// liveness notes which native clients are there. Only the leader's counts, and it begins anew with each leader: then every
// client has all of its time again.
type liveness struct {
	mu    sync.Mutex
	fresh map[consensus.MemberID]struct{}  // heard here since the last scan
	heard map[consensus.MemberID]time.Time // by any member, as the leader knows
}

// KeepClient notes that a native client was heard here.
func (c *Clients) KeepClient(client consensus.MemberID) { c.alive.add(client) }

// ClientPatience is for how long a native client may be silent before its sessions are retired.
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

// forget begins anew: this member does not lead.
func (r *liveness) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.heard)
}

// note takes the word of a member, at the leader.
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

// silent returns those of the open sessions whose client was not heard for as long as patience. The clock of a client that
// is new to this leader begins now.
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

// Watch is the goroutine that tells the leader which clients were heard here, or that ends, on the leader, the
// sessions of those that nobody heard. A session ends only by a log entry, the same on every member.
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

// Heard takes the word of a member, at the leader, about the clients that it heard.
func (c *Clients) Heard(clients []consensus.MemberID) { c.alive.note(clients, c.options.Clock.Now()) }

// LastHeard returns when a client was heard last, as far as this member knows while it leads.
func (c *Clients) LastHeard(client consensus.MemberID) time.Time {
	c.alive.mu.Lock()
	defer c.alive.mu.Unlock()
	return c.alive.heard[client]
}

// retireSilent retires the sessions of clients that nobody heard for too long.
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
