package sim

import (
	"time"

	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/epoch"
)

// epochWatch is a member's view of other epochs of its cluster in one of its lives: package epoch, as in a real member, with
// the state that the checkers need beside it. The member does not campaign before it has asked its peers once.
type epochWatch struct {
	*epoch.Tracker

	own     identity.Claim
	timeout time.Duration // of elections
	newer   time.Duration // when it met a newer epoch without a quorum; zero: it has not
	met     bool          // a newer epoch was met since the last contact with a leader of its own
}

// newEpochWatch returns the watch of a process that claims own.
func newEpochWatch(own identity.Claim, rules identity.Rules, electionTimeout time.Duration) *epochWatch {
	return &epochWatch{Tracker: epoch.NewTracker(own, rules, electionTimeout), own: own, timeout: electionTimeout}
}

// Led notes that a leader of the member's own epoch is known.
func (w *epochWatch) Led(now time.Duration) {
	w.Tracker.Led(now)
	w.newer, w.met = 0, false
}

// Meet notes a caller, or a process that answered a greeting. A claim that the rule of evidence does not accept proves nothing
// to the checkers either, whatever the member does about it.
func (w *epochWatch) Meet(c identity.Claim, evidence identity.Evidence, now time.Duration) {
	w.Tracker.Meet(c, evidence)
	if !evidence.Believed(identity.Rules{}) {
		return
	}
	if !w.Foreign(&c) || c.Epoch.Number <= w.own.Epoch.Number {
		return
	}
	w.met = true
	if !w.HasQuorum(now) && w.newer == 0 {
		w.newer = now
	}
}

// Knew reports whether the member has known for longer than an election timeout that the cluster was recovered without it, and
// has had no quorum since. It must serve nothing then: this is for checkers.
func (w *epochWatch) Knew(now time.Duration) bool { return w.newer > 0 && now > w.newer+w.timeout }

// Overdone reports whether the member serves nothing although it has met no newer epoch since its last contact with a leader of
// its own: this is for checkers.
func (w *epochWatch) Overdone(now time.Duration) bool {
	return w.State(now) == identity.Superseded && !w.met
}
