package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/lanes"
)

// statusTimeout is how long status waits for the loop before it returns the last copy, and maxAsked is how many callers may
// wait.
const (
	statusTimeout = 2 * time.Second
	maxAsked      = 1024
)

// statusBoard gives copies of the core's state to all goroutines. The loop makes the copies.
type statusBoard struct {
	asked  lanes.Queue[chan<- raft.Status]
	known  atomic.Pointer[raft.Status] // the last copy
	timers timerPool
}

// answer gives a copy to all waiting callers.
func (b *statusBoard) answer(replica *raft.Replica) {
	for _, answer := range b.asked.Take(nil) {
		status := replica.Status()
		b.known.Store(&status)
		answer <- status
	}
}

// ask waits for a copy, after wake has woken the loop. If the loop hangs it returns the last copy, because a caller that
// inspects a hanging member must not hang, too. Once ctx has ended it returns the zero value.
func (b *statusBoard) ask(ctx context.Context, wake func()) raft.Status {
	if b.asked.Len() >= maxAsked {
		return b.last()
	}
	timer := b.timers.get(statusTimeout)
	defer b.timers.put(timer)
	answer := make(chan raft.Status, 1)
	b.asked.Put(answer)
	wake()
	select {
	case status := <-answer:
		return status
	case <-timer.C:
		return b.last()
	case <-ctx.Done():
		return raft.Status{}
	}
}

func (b *statusBoard) last() raft.Status {
	if known := b.known.Load(); known != nil {
		return *known
	}
	return raft.Status{}
}
