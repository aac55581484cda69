package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// departure is how a removed member stops, so that each of its callers gets an answer:
//
//	removal committed -> applied here -> Leaving is closed -> the server turns clients away and lets running requests
//	end: the leader goes on sending the log for an election timeout -> Depart -> the member stops
type departure struct {
	applied atomic.Bool   // the removal is applied here, and its proposer has the result
	leaving chan struct{} // see Member.Leaving
	done    chan struct{} // see Member.Depart
}

func (d *departure) init() { d.leaving, d.done = make(chan struct{}), make(chan struct{}, 1) }

// depart says that no caller waits for this member any more.
func (d *departure) depart() {
	select {
	case d.done <- struct{}{}:
	default:
	}
}

// leave returns when a removed member may stop. First it waits until the removal is applied here, which it checks once per
// poll. If that takes longer than timeout, leave returns and does not close leaving: a member that learns of its removal late
// is not sent that entry any more. Otherwise it closes leaving, and waits until the running requests have ended, for timeout at
// most.
func (d *departure) leave(ctx context.Context, timeout, poll time.Duration) {
	if !d.awaitApplied(ctx, timeout, poll) {
		return
	}
	close(d.leaving)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-d.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (d *departure) awaitApplied(ctx context.Context, timeout, poll time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for !d.applied.Load() {
		select {
		case <-ticker.C:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// note notes the applied configuration. The apply lane calls it after it has completed the proposals of the batch: the proposer
// of the removal has its result before leaving is closed.
func (d *departure) note(config *consensus.Config, self consensus.MemberID) {
	d.applied.Store(len(config.Members) > 0 && !config.Contains(self))
}
