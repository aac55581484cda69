package membership

import "github.com/quorate/quorate/internal/consensus"

// Plan says what a Spec will do to the cluster of a View, before anything is done.
type Plan struct {
	Config   consensus.ConfigID // that the plan was made for
	Leader   consensus.MemberID
	Protocol consensus.Protocol // of the step that changes voters; never auto, zero if none does
	Now      Strength
	Steps    []PlanStep
	// Blockers are what the leader would refuse, or what cannot succeed as things are; each names the cause and what to do.
	Blockers []string
	// Warnings are worth a thought: a lower tolerance on the way, a member that has not started.
	Warnings []string
	// WaitsFor are the jobs that have not ended and that the change would wait for. A Spec that is started after the plan
	// names them in After.
	WaitsFor []JobID
	// Undo is the command that takes the change back once it is made; empty if there is none.
	Undo string
	// Done is true if the cluster already is as the Spec wants it.
	Done bool
}

// PlanStep is one step, and the cluster's strength while it is under way and after it.
type PlanStep struct {
	Title  string // "add m4 (http://…) as a learner"
	Detail string // "stream 3.1 GiB, then follow the log"; may be empty
	During Strength
	After  Strength
}

// Strength is how many failures a configuration stands. In a joint configuration Active and Tolerates are those of the
// weaker set.
type Strength struct {
	Voters      int
	Outgoing    int // voters of the other set while joint; else 0
	Learners    int
	Quorum      int // of Voters
	OutQuorum   int // of Outgoing; 0 unless joint
	Superquorum int // of Voters: who must accept a write on the fast path
	Active      int // voters that were heard lately and have caught up
	// Tolerates is how many more of the active voters may fail, whichever they are, before writes stop; negative if they
	// have stopped already.
	Tolerates int
}
