package lanes

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// Inbox is where inputs for the loop wait. It holds up no sender but a stream of another member that brings more than the loop
// takes: the rest stays in its connection then.
type Inbox struct {
	most int // bytes of the messages of one member that wait, or one delivery

	mu      sync.Mutex
	room    sync.Cond
	inputs  []raft.Input
	spare   []raft.Input
	waiting map[consensus.MemberID]int // bytes by sender; NoMember has those of all that are not in the configuration
	closed  bool
	turn    func() // has the loop take what waits
}

func (b *Inbox) init(most int, turn func()) {
	b.most, b.turn, b.waiting, b.room.L = most, turn, map[consensus.MemberID]int{}, &b.mu
}

// Close makes PutPaced return at once. It is called when the loop takes nothing more.
func (b *Inbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.room.Broadcast()
}

// PutPaced is PutMessages for a stream, which counts as that of the member from. It returns when there is room, or the member
// stops.
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

// Put leaves inputs and wakes the loop.
func (b *Inbox) Put(inputs ...raft.Input) {
	b.mu.Lock()
	b.inputs = append(b.inputs, inputs...)
	b.mu.Unlock()
	b.turn()
}

// PutMessages leaves messages for the core, however many wait.
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

// Wake has the loop step soon.
func (b *Inbox) Wake() { b.turn() }

// take returns what waits. The slice is valid until the next call.
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
