package member

import (
	"cmp"
	"container/heap"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// maxHold bounds how long a proposal of the fast path is kept back. A stamp further ahead comes from a clock that is wrong.
const maxHold = 250 * time.Millisecond

// busyFor is how long a member counts as one that proposes.
const busyFor = 5 * time.Second

// holder keeps proposals of the fast path back until they are due, so that all members meet those of several proposers in
// one order, that of their stamps, and choose the same revisions (deadline-ordered multicast, Nezha, VLDB 2023). Clocks
// that disagree cost agreement and up to maxHold of delay, never safety.
type holder struct {
	mu      sync.Mutex
	waiting heldMessages
	arrived uint64                           // messages so far
	heard   map[consensus.MemberID]time.Time // when a proposer was heard last
	timer   *time.Timer
	now     func() time.Time
	deliver func(messages []consensus.Message)
}

// put takes messages, and delivers those that are due.
func (h *holder) put(messages ...consensus.Message) {
	h.mu.Lock()
	for i := range messages {
		h.arrived++
		if p := messages[i].Proposals; len(p) == 0 || !p[0].ID.Session.OfClient() {
			h.heard[messages[i].From] = h.now() // clients see for themselves who is busy
		}
		heap.Push(&h.waiting, heldMessage{messages[i], h.arrived})
	}
	h.mu.Unlock()
	h.release()
}

// release delivers what is due, in the order of the stamps, and sees to the rest.
func (h *holder) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	var due []consensus.Message
	for len(h.waiting) > 0 {
		wait := time.Unix(0, int64(h.waiting[0].Due)).Sub(now)
		if wait > 0 && wait <= maxHold {
			h.wake(wait)
			break
		}
		due = append(due, heap.Pop(&h.waiting).(heldMessage).Message)
	}
	if len(due) > 0 {
		h.deliver(due) // under the lock: the order counts
	}
}

func (h *holder) wake(after time.Duration) {
	if h.timer == nil {
		h.timer = time.AfterFunc(after, h.release)
		return
	}
	h.timer.Reset(after)
}

// busy reports whether a member has proposed lately. Whoever does is among those that must meet all in one order: it counts
// itself.
func (h *holder) busy(id consensus.MemberID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, heard := h.heard[id]
	return heard && h.now().Sub(at) < busyFor
}

// stop forgets what waits.
func (h *holder) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
	h.waiting = nil
}

// stamped reports whether a message says when it wants to be looked at.
func stamped(m *consensus.Message) bool {
	return (m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose) && m.Due != 0
}

// heldMessage is a message and when it came, as a count.
type heldMessage struct {
	consensus.Message
	arrival uint64
}

// heldMessages is a heap by stamp, then proposer, then arrival: those of one proposer stay in their order.
type heldMessages []heldMessage

func (h heldMessages) Len() int { return len(h) }

func (h heldMessages) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.From, b.From), cmp.Compare(a.arrival, b.arrival)) < 0
}

func (h heldMessages) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *heldMessages) Push(m any) { *h = append(*h, m.(heldMessage)) }

// Pop implements heap.Interface.
func (h *heldMessages) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = heldMessage{}
	*h = (*h)[:len(*h)-1]
	return last
}
