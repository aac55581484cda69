package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/progress"
	"github.com/quorate/quorate/internal/consensus/raftlog"
	"github.com/quorate/quorate/internal/consensus/readindex"
)

// Replica is the state of one member in the protocol. Its fields serve every role; the state of a leader is in the type leader,
// which lasts for one term. Step takes the inputs.
type Replica struct {
	opts  Options
	clock clock
	hard  hardState
	out   outbox
	fast  *fast.Path
	stats stats

	// The log, and the configurations that derive from it: journal.go changes both together.
	log       raftlog.Log
	configs   configs.History
	resetMeta *consensus.SnapshotMeta // the log on disk has to begin anew after it

	role   Role
	leader consensus.MemberID // of the current term, or NoMember
	// boundTo is the configuration in force by the leader's last refusal, if this member's log does not have it yet.
	boundTo consensus.ConfigID

	elect     election
	spared    []consensus.MemberID  // by the last input Spare: cordon.go
	handovers progress.HandoverPace // paces the transfers that this member begins because it is cordoned; it outlives a term

	lead *leader // nil unless this member leads

	follow     following               // a term begins with a new one
	installing *consensus.SnapshotMeta // the snapshot that replaces the state
	inferred   uint64                  // of its own proposals' entries, found committed before the leader said so
	telling    []consensus.MemberID    // scratch of reportMatch

	forwards forwards
}

// leader is the state that a member has only while it leads. The member makes it when it wins the term, and drops it when it
// steps down: no part of it survives the term.
type leader struct {
	*Replica

	noop        consensus.Index  // index of this leader's first entry
	peers       []*progress.Peer // every other member, sorted by id
	rounds      rounds
	heartbeatAt uint64 // tick of the next heartbeat
	reads       leaderReads
	transfer    transfer
	repeats     repeats
	matchWord   lastWord // of what is on the disks of a quorum
}

// started reports whether an entry of this leader's term has committed. Before, the leader does not know the commit index.
func (l *leader) started() bool { return l.log.Commit() >= l.noop }

// Role is the part of a replica in its term.
type Role uint8

// The roles. A learner is a follower without a vote in its configuration.
const (
	Follower     Role = 0
	PreCandidate Role = 1
	Candidate    Role = 2
	Leader       Role = 3
)

func (r Role) String() string {
	switch r {
	case Follower:
		return "follower"
	case PreCandidate:
		return "pre-candidate"
	case Candidate:
		return "candidate"
	case Leader:
		return "leader"
	}
	return "unknown"
}

// clock is the time, in ticks since the start.
type clock struct{ now uint64 }

// election is the state of campaigns: when this member campaigns, its promises to leaders, and the votes that it got. It
// belongs to every role: a leader, too, draws when it would campaign.
type election struct {
	rng random

	heardAt    uint64 // tick of the leader's last message, or at which this term's role began
	ledAt      uint64 // tick of the last message of any leader, or at which this member led
	campaignAt uint64 // tick of the next campaign, unless a leader's message comes
	spread     int    // of the next wait, in ticks, while waits are short; else zero
	suspect    bool   // the connection to the leader broke: this member refuses no candidate for its sake
	// patientUntil is the tick at which no leader can rely on a promise of this member any more, whatever its term.
	patientUntil uint64

	votes     configs.Votes
	logBehind bool // a voter that refused has a more up-to-date log
	removed   bool // for ever: never campaign again
	// neededAt is the tick of the last vote request of a candidate whose log is less up-to-date and that cannot win without
	// this member's vote: see noteNeeded.
	neededAt uint64
	// A leader asked this member to campaign in the term askedIn, and a change has to be applied first.
	askedIn   consensus.Term
	askForced bool // no other voter can lead
}

// following is a member's knowledge of the leader's log, in its term.
type following struct {
	matched          consensus.Index  // this log equals the leader's up to here
	roundHeard       uint64           // the highest round that arrived
	roundNew         bool             // it arrived in this Step
	roundInOrder     uint64           // the highest round that came with an append, in the order in which they were sent
	ackDue           bool             // appends of this Step need an acknowledgement
	echoDue          bool             // heartbeats of this Step need an echo
	conflictReported bool             // a LogConflict was reported
	logs             progress.Matches // the index up to which logs of voters equal the leader's, as reported
	told             lastWord         // of the leader, for whom its last commit waited
	reported         consensus.Index  // the index up to which this member reported its acknowledgements to proposers
	word             lastWord         // of what is on the disks of a quorum, as far as this member counts it itself
}

// forwards holds the requests of this member to the leader: those of this Step, and the reads without an answer.
type forwards struct {
	box       forwardBox
	offered   []consensus.Proposal // of this Step, for the leader and all other voters
	forwarded []uint64             // reads sent to the leader and not answered yet
	logEnds   readindex.Majority
	// answeredBy is the voter that told the end of its log last in this Step.
	answeredBy consensus.MemberID
}

// forwardBox gathers what this member forwards to the leader in one Step.
type forwardBox struct {
	proposals []consensus.Proposal
	reads     []consensus.ReadIndex
	transfer  consensus.MemberID
	spread    bool // the reads go to the other voters, too
	asks      bool // the leader is asked for a transfer, even if transfer names no member
}

// rounds are the rounds of messages by which a leader confirms its term: reads wait for their echoes, and the leader lease
// counts from their beginning.
type rounds struct {
	last    uint64
	open    bool            // the last round was begun in this Step and has not left yet
	started progress.Starts // for the leader lease
	barred  bool            // a transfer let a member ignore the lease
}

// leaderReads are the reads that wait at the leader, its own and those of others, in the order of arrival.
type leaderReads struct {
	waiting readindex.Waiting
	reply   consensus.Message // to the reader that is being answered
	early   consensus.Index   // the last entry of this term that may be answered before it has committed
	word    lastWord          // of the rounds that a quorum has echoed
	heard   bool              // a quorum has echoed a later round in this Step
}

// transfer is the transfer of leadership that a leader has begun.
type transfer struct {
	target   consensus.MemberID // or NoMember
	deadline uint64             // tick at which it is given up
	sent     bool               // MsgTimeoutNow was sent
}

// outbox gathers the Output of a Step.
type outbox struct {
	Output

	held      []heldMessage // by their seq: sendInTerm
	refusing  []addressedRefusal
	verdicts  []addressedVerdict // of the leader, on the fast path
	lastSends int                // capacity that the next Output.Send will likely need
}

// heldMessage waits until the persist request seq, which carries its term, is durable.
type heldMessage struct {
	message consensus.Message
	seq     uint64
}

// addressedRefusal is a refusal on its way to the member that forwarded the proposal.
type addressedRefusal struct {
	to      consensus.MemberID
	refusal consensus.Refusal
}

// addressedVerdict is a verdict on its way to a proposer.
type addressedVerdict struct {
	to      consensus.MemberID
	verdict consensus.Verdict
}

// stats counts what happened since the start.
type stats struct {
	dropped   filter.Counts
	logCounts LogCounts
}

// LogCounts say how much memory the log takes, and how often its bounds were met.
type LogCounts struct {
	raftlog.Bytes
	Withheld uint64 // appends, not taken because too much waits to be applied
	Outrun   uint64 // snapshots to followers, given up because the log had grown too far beyond them
}
