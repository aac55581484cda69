package epoch

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const (
	// firstPause is the time between the first two rounds of questions; it doubles up to lastPause.
	firstPause = time.Second
	lastPause  = 15 * time.Second
	// graceTimeouts is for how many election timeouts a member without a leader counts as one that has a quorum.
	graceTimeouts = 5
)

// Watch is what one life of a member knows of other epochs. Times are durations since an arbitrary fixed moment.
type Watch struct {
	own             identity.Claim
	electionTimeout time.Duration
	state           identity.Succession
	names           map[consensus.MemberID]string
	pause           time.Duration
	quorumUntil     time.Duration
}

// NewWatch returns the watch of a member that claims own.
func NewWatch(own identity.Claim, rules identity.Rules, electionTimeout time.Duration) *Watch {
	return &Watch{
		own: own, electionTimeout: electionTimeout, state: identity.Succession{Own: own.Epoch, Rules: rules},
		names: map[consensus.MemberID]string{}, pause: firstPause,
	}
}

// Led notes that a leader of the own epoch is known.
func (w *Watch) Led(now time.Duration) { w.quorumUntil = now + graceTimeouts*w.electionTimeout }

// HasQuorum reports whether a leader was known a short time ago.
func (w *Watch) HasQuorum(now time.Duration) bool { return now < w.quorumUntil }

// State is what the member may do.
func (w *Watch) State(now time.Duration) identity.EpochState { return w.state.State(w.HasQuorum(now)) }

// Name records the name of a member, whether it was met before or not.
func (w *Watch) Name(id consensus.MemberID, name string) {
	w.names[id] = name
	w.state.LearnName(id, name)
}

// Meet records the claim of a process that called or answered. It returns true if that is a member of another epoch
// that was not known. A process that is not a member yet has no life, and is ignored.
func (w *Watch) Meet(c identity.Claim) bool {
	if !w.Foreign(&c) {
		return false
	}
	return w.state.Meet(identity.Foreign{Claim: c, Name: w.names[c.Member]})
}

// Foreign reports whether a claim is that of a member of another epoch of this cluster.
func (w *Watch) Foreign(c *identity.Claim) bool {
	return c.Cluster == w.own.Cluster && c.Epoch != w.own.Epoch && c.Member != consensus.NoMember && !c.Life.IsZero()
}

// Asked records the end of a round of questions, and returns the time until the next round.
func (w *Watch) Asked() (pause time.Duration) {
	w.state.Looked()
	pause = w.pause
	w.pause = min(2*w.pause, lastPause)
	return pause
}

// MetAny reports whether members of other epochs were met lately.
func (w *Watch) MetAny() bool { return len(w.state.Foreign()) > 0 }

// Met returns the members of other epochs that were met lately, and for each a text that says what to do.
func (w *Watch) Met() (foreign []identity.Foreign, alarms []string) {
	foreign = w.state.Foreign()
	for i := range foreign {
		alarms = append(alarms, w.state.Alarm(&foreign[i]))
	}
	return foreign, alarms
}
