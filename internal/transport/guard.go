package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// guard judges claims: it is an identity.Guard with a lock, a file of what was seen, and a view of the open streams.
type guard struct {
	remember func([]identity.Seen) error
	rules    identity.Rules
	refusals [identity.Reasons]atomic.Uint64
	// config is the configuration in force, as claims knows it, read for every message.
	config atomic.Pointer[consensus.Config]

	mu       sync.Mutex
	claims   *identity.Guard
	troubles map[consensus.MemberID]Trouble // of members of the configuration
	met      map[consensus.MemberID]identity.Claim
}

// Trouble is why a member of the configuration can not take part.
type Trouble struct {
	Reason identity.Reason
	Text   string
	Since  time.Time
}

func (g *guard) init(o *Options) {
	g.remember, g.rules = o.Identity.Remember, o.Identity.Rules
	g.claims = identity.NewGuard(o.Self, o.Identity.Seen, o.Identity.Rules)
	first := &consensus.Config{}
	if o.Identity.HasConfig {
		first.Members = []consensus.Member{{ID: o.Self.Member}} // no other member is known yet: see identity.Receiver
	}
	g.config.Store(first)
	g.troubles = map[consensus.MemberID]Trouble{}
	g.met = map[consensus.MemberID]identity.Claim{}
}

// configure takes over a configuration. The guard forgets all that it knows of members that are not in it.
func (g *guard) configure(config *consensus.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := config.Clone()
	g.claims.Configure(now.Members)
	g.config.Store(&now)
	for id := range g.troubles {
		if !now.Contains(id) {
			delete(g.troubles, id)
		}
	}
	for id := range g.met {
		if !now.Contains(id) {
			delete(g.met, id)
		}
	}
}

// judge accepts a claim, after what must be remembered of it is on disk, or returns why it is refused.
func (g *guard) judge(c *identity.Claim, evidence identity.Evidence, speaker identity.Speaker) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	refused, remember := g.claims.Meet(c, evidence, speaker)
	if refused != nil {
		return refused
	}
	if remember && g.remember != nil {
		if err := g.remember(g.claims.Seen()); err != nil {
			return fmt.Errorf("transport: remember the start of %v: %w", c.Member, err)
		}
		g.claims.Saved()
	}
	if g.claims.Proved(c) {
		delete(g.troubles, c.Member)
	}
	return nil
}

// proved reports whether what comes under a claim may be counted.
func (g *guard) proved(c *identity.Claim) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.claims.Proved(c)
}

// meet notes that a member and this one have accepted each other.
func (g *guard) meet(c *identity.Claim) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.claims.Config().Contains(c.Member) {
		g.met[c.Member] = *c
	}
}

// accepted notes that the process that answers at the address of a member has accepted this one.
func (g *guard) accepted(by consensus.MemberID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.claims.Accepted(by)
}

// contradicted notes that a peer has refused this member, which does not obey. The text that it returns is for the log; empty:
// it was said before.
func (g *guard) contradicted(by consensus.MemberID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusals[identity.OtherHistory].Add(1)
	if !g.claims.Contradicted(by) {
		return ""
	}
	delete(g.met, by)
	return g.claims.OtherHistory(by)
}

// OtherHistories tells of the processes of another history that answer at the addresses of members, and what to do.
func (t *Transport) OtherHistories() (texts []string) {
	g := &t.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.claims.Config().Members {
		if text := g.claims.OtherHistory(m.ID); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// refused counts a refusal, and keeps it for Trouble if the claim is believed: any process that opens a stream can say that it
// is a member and has another disk.
func (g *guard) refused(c *identity.Claim, evidence identity.Evidence, err error) {
	var named *identity.Refusal
	if !errors.As(err, &named) {
		return
	}
	g.refusals[named.Reason].Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	// That one process was refused as a copy says nothing about the original, which still speaks.
	if evidence.Believed(g.rules) && named.Reason.Final() && named.Reason != identity.Cloned &&
		g.claims.Config().Contains(c.Member) {
		since := time.Now()
		if was, known := g.troubles[c.Member]; known && was.Reason == named.Reason {
			since = was.Since
		}
		g.troubles[c.Member] = Trouble{Reason: named.Reason, Text: named.Text, Since: since}
		if g.met[c.Member].Storage == c.Storage {
			delete(g.met, c.Member)
		}
	}
}

func (t *Transport) turnAway(c *identity.Claim, reason identity.Reason, text string) error {
	refused := &identity.Refusal{Reason: reason, Text: text}
	t.guard.refused(c, identity.Said, refused)
	return refused
}

// Met returns the claims of members of the configuration that have accepted this one, and that it has accepted, last.
func (t *Transport) Met() []identity.Claim {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	var all []identity.Claim
	for _, m := range t.guard.claims.Config().Members {
		if c, ok := t.guard.met[m.ID]; ok {
			all = append(all, c)
		}
	}
	return all
}

// Trouble tells why a member of the configuration is refused here. A refusal of another process that takes its name says
// nothing about a member that is connected.
func (t *Transport) Trouble(id consensus.MemberID) (Trouble, bool) {
	if _, up := t.ConnectedSince(id); up {
		return Trouble{}, false
	}
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
	if text := t.guard.claims.OtherHistory(id); text != "" {
		return Trouble{Reason: identity.OtherHistory, Text: text}, true
	}
	trouble, found := t.guard.troubles[id]
	return trouble, found
}

// Refusals returns how many claims this member refused for a reason.
func (t *Transport) Refusals(reason identity.Reason) uint64 {
	return t.guard.refusals[reason].Load()
}

// Distrust refuses the data directory that speaks for a member from now on, and after a restart: it denied what it had
// acknowledged.
func (t *Transport) Distrust(id consensus.MemberID) error {
	g := &t.guard
	g.mu.Lock()
	c, known := g.met[id]
	if !known || !g.claims.Distrust(id, c.Storage) {
		g.mu.Unlock()
		return nil
	}
	var err error
	if g.remember != nil {
		err = g.remember(g.claims.Seen())
	}
	g.mu.Unlock()
	t.dismiss(id, nil)
	t.hangUp(id)
	return err
}

// hangUp connects to a peer anew, and so shakes hands again.
func (t *Transport) hangUp(id consensus.MemberID) {
	if p := t.peer(id); p != nil {
		p.ordered.hangUp()
		p.express.hangUp()
	}
}

// dismiss ends the streams that a member has to us, but those of the given life.
func (t *Transport) dismiss(id consensus.MemberID, but *consensus.Life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, in := range t.incoming {
		if key.from == id && (but == nil || in.claim.Life != *but) {
			in.end(errSuperseded)
			delete(t.incoming, key)
		}
	}
}

// speaker waits until it is known whether another life of the claimed data directory still speaks: it has a stream to
// us, or we have one to it, of which there is evidence, and something arrives on it after the claim. A stream of a process that
// died ends, or stays silent. It is not known if ctx ends first.
func (t *Transport) speaker(ctx context.Context, c *identity.Claim) identity.Speaker {
	if t.guard.proved(c) {
		return identity.Speaker{} // no other life ends this one
	}
	begun, deadAfter := time.Now(), t.options.Times.DeadAfter
	for {
		decided := true
		for _, other := range t.otherLives(c) {
			speaks, known := identity.StillSpeaks(0, int64(other.heard.Sub(begun)), int64(time.Since(begun)), int64(deadAfter))
			if speaks {
				return identity.Speaker{Life: other.claim.Life, Address: other.claim.Address}
			}
			decided = decided && known
		}
		if decided {
			return identity.Speaker{}
		}
		timer := time.NewTimer(deadAfter / 64)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return identity.Speaker{}
		case <-t.ctx.Done():
			timer.Stop()
			return identity.Speaker{}
		}
	}
}

// otherLives finds the open streams of other lives of the claimed data directory of which there is evidence.
func (t *Transport) otherLives(c *identity.Claim) (others []voice) {
	if c.Storage.IsZero() {
		return nil
	}
	add := func(v voice) {
		if v.claim.Storage == c.Storage && v.claim.Life != c.Life {
			others = append(others, v)
		}
	}
	if p := t.peer(c.Member); p != nil {
		for _, v := range p.voices() {
			add(v)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range []streamKind{streamOrdered, streamExpress} {
		if in := t.incoming[streamKey{from: c.Member, kind: kind}]; in != nil {
			heard, _ := in.heard.Get()
			add(voice{in.claim, heard})
		}
	}
	return others
}

// reconsider judges the members that have a stream to us again: a new configuration may say more of them.
func (t *Transport) reconsider() {
	t.mu.Lock()
	open := make(map[*incoming]identity.Evidence, len(t.incoming))
	for _, in := range t.incoming {
		open[in] = in.evidence
	}
	t.mu.Unlock()
	for in, evidence := range open {
		if err := t.guard.judge(&in.claim, evidence, identity.Speaker{}); err != nil {
			t.guard.refused(&in.claim, evidence, err)
			in.end(refusal(err))
			t.hangUp(in.claim.Member)
		}
	}
}

// welcome judges the claim on the other end of a connection, whichever side dialled, unless ctx, which is that of the stream
// or call, has ended before.
func (t *Transport) welcome(ctx context.Context, c *identity.Claim, evidence identity.Evidence) error {
	speaker := t.speaker(ctx, c)
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if err := t.guard.judge(c, evidence, speaker); err != nil {
		t.guard.refused(c, evidence, err)
		return err
	}
	if evidence.Believed(t.guard.rules) {
		t.dismiss(c.Member, &c.Life)
	}
	return nil
}
