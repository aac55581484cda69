package membership

import "github.com/quorate/quorate/internal/consensus"

// JobID names a job. The caller that asks for a job draws it, so that asking twice with one id makes one job.
type JobID uint64

// Job is a Spec that the cluster has accepted and how far it is. It is replicated as JSON.
type Job struct {
	ID    JobID `json:"id"`
	Spec  Spec  `json:"spec"`
	State State `json:"state"`
	Phase Phase `json:"phase,omitempty"`
	// Care says that Care started the job: set when it is accepted.
	Care bool `json:"care,omitempty"`
	// Message says in one sentence what is going on, what is waited for, or how the job ended.
	Message string `json:"message,omitempty"`
	// CancelAsked is set by the operator; the leader acts on it while it still can.
	CancelAsked bool `json:"cancel_asked,omitempty"`
	// Expired is set once a newcomer has not started in time: the job takes back what it can, and fails.
	Expired bool `json:"expired,omitempty"`
	// Phases are those that the job goes through, as they were foreseen when it was accepted.
	Phases []Phase `json:"phases,omitempty"`
	// Begun is when its phases began, in that order, each for the first time. Those that began under a leader of 1.0, which
	// knows no such field, are not there.
	Begun []PhaseTime `json:"begun,omitempty"`
	// Names are those of the members that the Spec names, as NoteNames found them when the job was accepted: once removed, a
	// member has no name in any View.
	Names []Named `json:"names,omitempty"`
	// Undo is the command that takes the change back once it is made, as it was foreseen when the job was accepted.
	Undo string `json:"undo,omitempty"`
	// WaitedMS is for how many milliseconds leaders have seen the job run, each by its own clock, which it compares with no
	// other. The time from when one wrote it last to when the next one looks is not counted.
	WaitedMS int64 `json:"waited_ms,omitempty"`
	// Created, Started, Updated and Ended are unix milliseconds of the leader's clock; 0 if not yet. They are for people:
	// clocks of two leaders differ.
	Created int64 `json:"created"`
	Started int64 `json:"started,omitempty"`
	Updated int64 `json:"updated"`
	Ended   int64 `json:"ended,omitempty"`
	// Config is the configuration that the job began with, set before its first action is taken: until then Next refuses
	// members that the configuration does not have, and another configuration than Spec.Expected. Final is the one it ended
	// with.
	Config consensus.ConfigID `json:"config,omitzero"`
	Final  consensus.ConfigID `json:"final,omitzero"`
}

// PhaseTime is when a phase began.
type PhaseTime struct {
	Phase Phase `json:"phase"`
	At    int64 `json:"at"`
}

func (j *Job) begun() bool { return j.Config != consensus.ConfigID{} }

// State is how far a job is. Jobs run one at a time, in the order of their creation, but for those that wait for what may never
// come: see Job.StandsAside.
type State string

// The states. The last three are final.
const (
	StateQueued    State = "queued"
	StateRunning   State = "running"
	StateDone      State = "done"
	StateFailed    State = "failed"
	StateCancelled State = "cancelled"
)

// Ended reports whether nothing more will happen.
func (s State) Ended() bool { return s == StateDone || s == StateFailed || s == StateCancelled }

// Phase is what a running job is at. Which phases there are, and their order, depends on the Spec.
type Phase string

// The phases, in the order in which they can occur.
const (
	PhaseMakeRoom Phase = "make-room" // a member whose peer URL the newcomer takes is removed first
	PhaseJoin     Phase = "join"      // newcomers are added as learners
	PhaseStart    Phase = "start"     // they have not been heard yet: an operator must start them
	PhaseSnapshot Phase = "snapshot"  // they receive the state
	PhaseCatchUp  Phase = "catch-up"  // they receive the log
	PhaseCordon   Phase = "cordon"    // members are cordoned and uncordoned
	PhaseDrain    Phase = "drain"     // leadership is transferred away from a member that is removed
	PhaseSwap     Phase = "swap"      // the voters change, at once
	PhaseUpdate   Phase = "update"    // in place of swap if peer URLs change and nothing else
	PhaseDecided  Phase = "decided"   // no leader can undo the change any more
	PhaseSettle   Phase = "settle"    // until the removed may be switched off
	PhaseUndo     Phase = "undo"      // cancelled: newcomers are removed again
)

// Action is what the leader does next for a job. Exactly one of the fields is set, but for Phase and Message, which
// describe it.
type Action struct {
	Phase   Phase
	Message string
	Wait    bool // nothing to do until the View changes
	// Change is to be proposed. It expects the configuration of the View: after ReasonStaleConfig, ReasonChangePending, or
	// any refusal of an abort, ask Next again. Another refusal that a retry cannot cure ends the job.
	Change   *consensus.ChangeRequest
	Transfer consensus.MemberID // hand leadership to it
	End      State              // the job is over
	Expired  bool               // from now on Job.Expired is true
}

// Named is the name that a member had.
type Named struct {
	ID   consensus.MemberID
	Name string
}

// NoteNames remembers the names of the members that the Spec names, for the messages of the job.
func (j *Job) NoteNames(v *View) {
	j.Names = nil
	for _, id := range j.Spec.existing() {
		if m, ok := v.Member(id); ok && m.Name != "" {
			j.Names = append(j.Names, Named{ID: id, Name: m.Name})
		}
	}
}
