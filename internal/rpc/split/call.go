package split

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Call is the context of a call, and takes its passage. It is a part of what is allocated for a call anyway.
type Call struct {
	context.Context

	mu      sync.Mutex // a request may go on after its call
	passage proposals.Passage
	read    time.Duration
}

// Value implements context.Context.
func (c *Call) Value(key any) any {
	if _, asks := key.(member.PassageKey); asks {
		return c
	}
	return c.Context.Value(key)
}

// Of returns the call of a context; nil if there is none.
func Of(ctx context.Context) *Call {
	c, _ := ctx.Value(member.PassageKey{}).(*Call)
	return c
}

// Passed implements member.PassageTaker. A call that makes more than one request has the passage of the one that took longest.
func (c *Call) Passed(p proposals.Passage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passage.Left.IsZero() || p.Ready.Sub(p.Left) > c.passage.Ready.Sub(c.passage.Left) {
		c.passage = p
	}
}

// Passage returns the passage so far.
func (c *Call) Passage() (p proposals.Passage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passage
}

// Read adds the time that a call read the store. It may be called on a nil Call.
func (c *Call) Read(took time.Duration) {
	if c != nil {
		c.mu.Lock()
		c.read += took
		c.mu.Unlock()
	}
}

// Inside returns the passage, and how long the call read the store.
func (c *Call) Inside() (p proposals.Passage, read time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passage, c.read
}
