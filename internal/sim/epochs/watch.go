package epochs

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const (
	firstPause = time.Second
	lastPause  = 15 * time.Second
	// grace is for how many election timeouts a member without a leader counts as one that has a quorum.
	grace = 5
)

// Watch is one life of a member among epochs.
type Watch struct {
	State    identity.Succession
	Patience time.Duration // an election timeout

	own     identity.Claim
	pause   time.Duration
	quorate time.Duration // until then it has a quorum
	newer   time.Duration // since when it knows of a newer epoch, met without a quorum; zero: it does not
}

// New returns the watch of a process that claims own.
func New(own identity.Claim, rules identity.Rules, patience time.Duration) *Watch {
	return &Watch{State: identity.Succession{Own: own.Epoch, Rules: rules}, Patience: patience, own: own, pause: firstPause}
}

// Led notes that a leader of the own epoch is known.
func (w *Watch) Led(now time.Duration) { w.quorate, w.newer = now+grace*w.Patience, 0 }

// Standing is what the member may do.
func (w *Watch) Standing(now time.Duration) identity.Standing {
	return w.State.Standing(now < w.quorate)
}

// Meet notes who called, or answered a greeting.
func (w *Watch) Meet(c identity.Claim, now time.Duration) {
	if c.Cluster != w.own.Cluster || c.Epoch == w.own.Epoch || c.Member == consensus.NoMember || c.Life.IsZero() {
		return
	}
	w.State.Meet(identity.Foreign{Claim: c})
	if c.Epoch.Number > w.own.Epoch.Number && now >= w.quorate && w.newer == 0 {
		w.newer = now
	}
}

// Looked notes the end of a round of greetings, and returns when the next one begins.
func (w *Watch) Looked() (pause time.Duration) {
	w.State.Looked()
	pause = w.pause
	w.pause = min(2*w.pause, lastPause)
	return pause
}

// Knew reports whether the member has known for longer than an election timeout that the cluster was recovered without it, and
// has had no quorum since. It must serve nothing then, whatever it does about it: this is for checkers.
func (w *Watch) Knew(now time.Duration) bool { return w.newer > 0 && now > w.newer+w.Patience }
