package member

import (
	"sync/atomic"
	"time"
)

// departure is how a removed member goes, so that nobody who asked it for something is left without an answer:
//
//	removal committed -> applied here -> Leaving is closed -> the server turns clients away and lets running requests
//	end: the leader goes on sending the log for an election timeout -> Depart -> the member stops
type departure struct {
	applied atomic.Bool   // the removal, and answered
	leaving chan struct{} // closed: no new request should reach this member
	done    chan struct{} // nobody waits for it any more
}

func newDeparture() *departure {
	return &departure{leaving: make(chan struct{}), done: make(chan struct{}, 1)}
}

// Leaving is closed when this member is about to stop because it was removed: no new request should reach it.
func (m *Member) Leaving() <-chan struct{} { return m.departure.leaving }

// Depart tells a leaving member that nobody waits for it any more.
func (m *Member) Depart() {
	select {
	case m.departure.done <- struct{}{}:
	default:
	}
}

// leave ends a member that the cluster has removed. What was committed with the removal is applied first; one that is
// told of its removal long after will not be sent that entry any more. Then requests under way may end.
func (m *Member) leave() {
	if !m.waitFor(m.departure.applied.Load) {
		m.fail(ErrRemoved)
		return
	}
	close(m.departure.leaving)
	patience := time.NewTimer(m.electionTimeout())
	defer patience.Stop()
	select {
	case <-m.departure.done:
	case <-patience.C:
	case <-m.stopping.Done():
	}
	m.fail(ErrRemoved)
}

// waitFor polls for an election timeout; false if it passed, or the member stops.
func (m *Member) waitFor(done func() bool) bool {
	patience := time.NewTimer(m.electionTimeout())
	defer patience.Stop()
	poll := time.NewTicker(m.options.TickInterval)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-patience.C:
			return false
		case <-m.stopping.Done():
			return false
		}
	}
	return true
}

// noteRemoval remembers, in the goroutine that applies, that this member's removal is applied and that whoever asked
// for it has been answered. Looking at the state alone would be too early: it shows the removal before the answer.
func (m *Member) noteRemoval() {
	config, _ := m.data.Machine.Config()
	m.departure.applied.Store(len(config.Members) > 0 && !config.Contains(m.ID()))
}
