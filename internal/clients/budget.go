package clients

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/offers"
)

// budget is an offers.Budget that waits: an offer beyond it blocks, and with it the stream that it came by.
type budget struct {
	mu      sync.Mutex
	left    sync.Cond
	closed  bool
	offered offers.Budget
}

func (b *budget) init() { b.left.L = &b.mu }

// enter waits until the message fits, and counts it. False means that the member stops.
func (b *budget) enter(message *consensus.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.closed {
		if b.offered.Enter(message) {
			return true
		}
		b.left.Wait()
	}
	return false
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

// close ends all waiting.
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
