package clients

import (
	"sync"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/offers"
)

// waitingRoom lets what native clients offer in, when there is room. An offer that finds none waits, and with it the stream
// that it came by.
type waitingRoom struct {
	mu     sync.Mutex
	left   sync.Cond
	closed bool
	room   offers.Room
}

func (w *waitingRoom) init() { w.left.L = &w.mu }

// enter counts a message, when there is room. False means that the member stops.
func (w *waitingRoom) enter(message *consensus.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed {
		if w.room.Enter(message) {
			return true
		}
		w.left.Wait()
	}
	return false
}

// taken makes room again for what the core takes.
func (w *waitingRoom) taken(inputs []raft.Input) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.room.Bytes() == 0 {
		return
	}
	for i := range inputs {
		if received, ok := inputs[i].(raft.Receive); ok {
			w.room.Leave(&received.Message)
		}
	}
	w.left.Broadcast()
}

// close lets nobody wait any more.
func (w *waitingRoom) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.left.Broadcast()
}

func (w *waitingRoom) bytes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.room.Bytes()
}
