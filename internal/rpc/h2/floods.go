package h2

import (
	"sync/atomic"
	"time"
)

// floods weighs frames that bring nothing forward against those that do. Those are DATA of a request, and what the client is
// sent: it gives windows back for that, and pings. Frames that are small because its window is, and end no message, bring
// nothing forward.
type floods struct{ score atomic.Int64 }

const (
	// maxIdleScore is how much more may come that brings nothing forward than what does.
	maxIdleScore = 4096
	// idleFrame is what a frame costs that brings nothing forward, and wrongFrame what one does that makes the server reset a
	// stream.
	idleFrame  = 1
	wrongFrame = 16
	// forwardScore is what a frame pays that brings something forward: a client sends a ping and updates of windows with each
	// answer.
	forwardScore = 8
	// maxCredit is how much may be paid ahead: a client answers only later what fills its windows, thousands of small messages.
	maxCredit = 64 << 10
	// hastyReset is how soon a client resets a request that it did not want: what its DATA paid is taken back.
	hastyReset = 100 * time.Millisecond
	// maxUnended is how many streams of a connection may have ended for the client, and not for the handler, until it is read
	// no further after a hasty reset; for at most endPause: some work does not end when its client does not want it any more.
	maxUnended = 16
	endPause   = 100 * time.Millisecond
	// resetsTogether is how many hasty resets, that nothing paid for, a host is charged with at once.
	resetsTogether = 16
	// largeBytes is what a frame carries that pays in any case.
	largeBytes = 1 << 10
)

// idle takes note of what brings nothing forward.
func (f *floods) idle(cost int) error {
	if f.score.Add(int64(cost)) > maxIdleScore {
		return broken(EnhanceYourCalm, "too many frames that bring nothing forward")
	}
	return nil
}

// forgiven is how much of the score a second takes away: a client that is sent nothing may still ping for days.
const forgiven = 100

// forgive takes note of the time that has passed.
func (f *floods) forgive(passed time.Duration) {
	much := max(1, int64(passed*forgiven/time.Second))
	for score := f.score.Load(); score > 0; score = f.score.Load() {
		if f.score.CompareAndSwap(score, max(0, score-much)) {
			return
		}
	}
}

const (
	// hastyDrop is how old a request is at most that counts as abandoned: one that takes longer is a watch, or late.
	hastyDrop = 5 * time.Second
	// calmedRequests is how many requests a connection counts as that was ended for what it sent.
	calmedRequests = 256
)

// forward takes note of a frame that does, and returns what it paid.
func (f *floods) forward() (paid int) {
	if f.score.Load() > -maxCredit {
		f.score.Add(-forwardScore)
		return forwardScore
	}
	return 0
}

// pings enforces how often a client may ping to keep a connection alive, as grpc-go does: a client that does so too often three
// times is sent away, and clients of gRPC then ping half as often.
type pings struct {
	last    time.Time
	wrote   uint64
	strikes int
}

const (
	maxStrikes = 2
	// idlePing is how often a client may ping that has no stream, and may not do so.
	idlePing = 2 * time.Hour
)

func (p *pings) check(now time.Time, wrote uint64, streams bool, least time.Duration) error {
	if wrote != p.wrote { // something was sent since
		p.wrote, p.strikes, p.last = wrote, 0, now
		return nil
	}
	if !streams {
		least = idlePing
	}
	if now.Sub(p.last) < least {
		p.strikes++
	}
	p.last = now
	if p.strikes > maxStrikes {
		return broken(EnhanceYourCalm, "too_many_pings")
	}
	return nil
}
