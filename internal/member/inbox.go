package member

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// inbox is where everybody leaves inputs for the loop. It never blocks the sender.
type inbox struct {
	mu     sync.Mutex
	inputs []raft.Input
	spare  []raft.Input
	signal chan struct{}
}

func (b *inbox) init() { b.signal = make(chan struct{}, 1) }

// put leaves inputs and wakes the loop.
func (b *inbox) put(inputs ...raft.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, inputs...)
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) putMessages(messages []consensus.Message) {
	b.mu.Lock()
	for i := range messages {
		b.inputs = append(b.inputs, raft.Receive{Message: messages[i]})
	}
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// take returns what waits. The slice is valid until the next call.
func (b *inbox) take() []raft.Input {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.inputs
	clear(b.spare)
	b.inputs = b.spare[:0]
	b.spare = taken
	return taken
}

// queue is a list that one goroutine empties at once and many fill.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	signal chan struct{}
}

func (q *queue[T]) init() { q.signal = make(chan struct{}, 1) }

func (q *queue[T]) put(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	q.wake()
}

func (q *queue[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

func (q *queue[T]) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// take returns everything that waits and hands the queue spare to fill next.
func (q *queue[T]) take(spare []T) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.items
	clear(spare)
	q.items = spare[:0]
	return taken
}
