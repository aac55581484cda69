package member

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// inbox is where inputs for the loop wait. It holds up no sender but a stream of another member that brings more than the loop
// takes: the rest stays in its connection then.
type inbox struct {
	most int // bytes of the messages of one member that wait, or one delivery

	mu      sync.Mutex
	room    sync.Cond
	inputs  []raft.Input
	spare   []raft.Input
	waiting map[consensus.MemberID]int // bytes by sender; NoMember has those of all that are not in the configuration
	closed  bool
	signal  chan struct{}
}

func (b *inbox) init(most int) {
	b.most, b.signal, b.waiting, b.room.L = most, make(chan struct{}, 1), map[consensus.MemberID]int{}, &b.mu
}

// close lets all senders go. The loop takes nothing more.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.room.Broadcast()
}

// putPaced is putMessages for a stream, which counts as that of the member from. It returns when there is room, or the member
// stops.
func (b *inbox) putPaced(from consensus.MemberID, messages []consensus.Message) {
	if len(messages) == 0 {
		return
	}
	size := 0
	for i := range messages {
		size += messages[i].SizeBytes()
	}
	b.mu.Lock()
	for b.waiting[from] > 0 && b.waiting[from]+size > b.most && !b.closed {
		b.room.Wait()
	}
	b.waiting[from] += size
	b.mu.Unlock()
	b.putMessages(messages)
}

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
	if len(b.waiting) > 0 {
		clear(b.waiting)
		b.room.Broadcast()
	}
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
