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

// Tracker is what one life of a member knows of other epochs. Times are durations since an arbitrary fixed moment.
type Tracker struct {
	own             identity.Claim
	electionTimeout time.Duration
	state           identity.Succession
	names           map[consensus.MemberID]string
	pause           time.Duration
	quorumUntil     time.Duration
}

// NewTracker returns the tracker of a member that claims own.
func NewTracker(own identity.Claim, rules identity.Rules, electionTimeout time.Duration) *Tracker {
	return &Tracker{
		own: own, electionTimeout: electionTimeout, state: identity.Succession{Own: own.Epoch, Rules: rules},
		names: map[consensus.MemberID]string{}, pause: firstPause,
	}
}

// Led notes that a leader of the own epoch is known. While members of a newer epoch are about, others are asked in short
// intervals: should the leader be lost, a member campaigns only after another round.
func (t *Tracker) Led(now time.Duration) {
	t.quorumUntil = now + graceTimeouts*t.electionTimeout
	if t.state.Led() {
		t.pause = firstPause
	}
}

// HasQuorum reports whether a leader was known a short time ago.
func (t *Tracker) HasQuorum(now time.Duration) bool { return now < t.quorumUntil }

// State is what the member may do.
func (t *Tracker) State(now time.Duration) identity.EpochState {
	return t.state.State(t.HasQuorum(now))
}

// Name records the name of a member, whether it was met before or not.
func (t *Tracker) Name(id consensus.MemberID, name string) {
	t.names[id] = name
	t.state.LearnName(id, name)
}

// Meet records the claim of a process that called or answered, if the evidence is such that it is believed. It returns true if
// that is a member of another epoch that was not known. A process that is not a member yet has no life, and is ignored.
func (t *Tracker) Meet(c identity.Claim, evidence identity.Evidence) bool {
	if !t.Foreign(&c) || !evidence.Believed(t.state.Rules) {
		return false
	}
	return t.state.Meet(identity.Foreign{Claim: c, Name: t.names[c.Member]})
}

// Foreign reports whether a claim is that of a member of another epoch of this cluster.
func (t *Tracker) Foreign(c *identity.Claim) bool {
	return c.Cluster == t.own.Cluster && c.Epoch != t.own.Epoch && c.Member != consensus.NoMember && !c.Life.IsZero()
}

// Ask records the begin of a round of questions.
func (t *Tracker) Ask() { t.state.Look() }

// Asked records the end of a round of questions, and returns the time until the next round.
func (t *Tracker) Asked() (pause time.Duration) {
	t.state.Looked()
	pause = t.pause
	t.pause = min(2*t.pause, lastPause)
	return pause
}

// MetAny reports whether members of other epochs were met lately.
func (t *Tracker) MetAny() bool { return len(t.state.Foreign()) > 0 }

// Met returns the members of other epochs that were met lately, and for each a text that says what to do.
func (t *Tracker) Met() (foreign []identity.Foreign, alarms []string) {
	foreign = t.state.Foreign()
	for i := range foreign {
		alarms = append(alarms, t.state.Alarm(&foreign[i]))
	}
	return foreign, alarms
}
