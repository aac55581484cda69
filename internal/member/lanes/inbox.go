package lanes

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Inbox is the queue of the loop's inputs. It blocks no sender except the stream of a member that brings more than the loop
// takes: the rest of that stream then stays in its connection.
type Inbox struct {
	most int // limit of the waiting bytes of one member; a single delivery may exceed it

	mu      sync.Mutex
	room    sync.Cond
	inputs  []raft.Input
	spare   []raft.Input
	waiting map[consensus.MemberID]int // bytes by sender; NoMember stands for all senders outside the configuration
	closed  bool
	turn    func() // asks for a turn of the loop
}

func (b *Inbox) init(most int, turn func()) {
	b.most, b.turn, b.waiting, b.room.L = most, turn, map[consensus.MemberID]int{}, &b.mu
}

// Close makes PutPaced return at once. Call it when the loop takes no more inputs.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.room.Broadcast()
}

// PutPaced is PutMessages for a stream, whose bytes count for the member from. It blocks until there is room, or until the
// member stops.
func (b *Inbox) PutPaced(from consensus.MemberID, messages []consensus.Message) {
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
	b.receive(messages)
	b.mu.Unlock()
	b.turn()
}

// Put queues inputs and wakes the loop.
func (b *Inbox) Put(inputs ...raft.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, inputs...)
	b.mu.Unlock()
	b.turn()
}

// PutMessages queues messages for the core without a limit.
func (b *Inbox) PutMessages(messages []consensus.Message) {
	b.mu.Lock()
	b.receive(messages)
	b.mu.Unlock()
	b.turn()
}

func (b *Inbox) receive(messages []consensus.Message) {
	for i := range messages {
		b.inputs = append(b.inputs, raft.Receive{Message: messages[i]})
	}
}

// Wake asks for a step of the loop.
func (b *Inbox) Wake() { b.turn() }

// take returns the queued inputs. The slice is valid until the next call.
func (b *Inbox) take() []raft.Input {
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
