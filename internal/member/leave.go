package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
)

// departure is how a removed member stops, so that nobody who asked it for something is left without an answer:
//
//	removal committed -> applied here -> Leaving is closed -> the server turns clients away and lets running requests
//	end: the leader goes on sending the log for an election timeout -> Depart -> the member stops
type departure struct {
	applied atomic.Bool   // the removal is applied here, and answered
	leaving chan struct{} // see Member.Leaving
	done    chan struct{} // see Member.Depart
}

func (d *departure) init() { d.leaving, d.done = make(chan struct{}), make(chan struct{}, 1) }

// depart says that nobody waits for this member any more.
func (d *departure) depart() {
	select {
	case d.done <- struct{}{}:
	default:
	}
}

// leave returns when a removed member may stop. What was committed with the removal is applied first, which is looked for
// once per poll; a member that is told of its removal long after will not be sent that entry any more. Then requests that
// run may end. Either takes timeout at most.
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

// note takes note of the configuration that is applied. It is called once who asked for it has been answered: the state
// shows the removal before that.
func (d *departure) note(config *consensus.Config, self consensus.MemberID) {
	d.applied.Store(len(config.Members) > 0 && !config.Contains(self))
}
