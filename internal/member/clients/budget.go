package clients

import (
	"context"
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/offers"
)

// budget is an offers.Budget that makes callers wait: an offer that does not fit blocks the stream on which it arrived.
type budget struct {
	mu      sync.Mutex
	left    sync.Cond
	closed  bool
	offered offers.Budget
}

func (b *budget) init(most int) {
	b.left.L = &b.mu
	b.offered.Most = most
}

// enter waits until the message fits, and counts its bytes. It returns false if the member stops, or ctx ends, before that.
func (b *budget) enter(ctx context.Context, message *consensus.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var stop func() bool
	for !b.closed && ctx.Err() == nil {
		if b.offered.Enter(message) {
			return true
		}
		if stop == nil {
			stop = context.AfterFunc(ctx, b.wake)
			defer stop()
		}
		b.left.Wait()
	}
	return false
}

// tryEnter counts the message if it fits.
func (b *budget) tryEnter(message *consensus.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.closed && b.offered.Enter(message)
}

// wake lets those who wait look whether they still want to.
func (b *budget) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left.Broadcast()
}

// leave gives back the bytes of an offer that does not reach the core.
func (b *budget) leave(message *consensus.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offered.Leave(message)
	b.left.Broadcast()
}

// taken gives back the bytes of the offers among inputs that the core has taken.
func (b *budget) taken(inputs []raft.Input) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offered.Bytes() == 0 {
		return
	}
	for i := range inputs {
		if received, ok := inputs[i].(raft.Receive); ok {
			b.offered.Leave(&received.Message)
		}
	}
	b.left.Broadcast()
}

// close makes all waiting callers return false.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.left.Broadcast()
}

func (b *budget) bytes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offered.Bytes()
}
