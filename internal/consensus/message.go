package consensus

// MessageKind names a message between members.
type MessageKind uint8

const (
	MsgPreVote        MessageKind = 1  // candidate -> voters; Raft thesis, section 9.6
	MsgPreVoteReply   MessageKind = 2  //
	MsgVote           MessageKind = 3  // candidate -> voters; Raft paper, section 5.2
	MsgVoteReply      MessageKind = 4  //
	MsgAppend         MessageKind = 5  // leader -> all; entries may be empty (a probe or a commit notice)
	MsgAppendReply    MessageKind = 6  // durable up to Match, or Reject with Refused and Hint
	MsgHeartbeat      MessageKind = 7  // leader -> all
	MsgHeartbeatReply MessageKind = 8  //
	MsgPropose        MessageKind = 9  // any -> leader; Proposals
	MsgProposeReply   MessageKind = 10 // leader -> proposer; only refusals: Refusals
	MsgRead           MessageKind = 11 // any -> leader; Reads
	MsgReadReply      MessageKind = 12 // leader -> reader; Reads with their Index
	MsgSnapshotOffer  MessageKind = 13 // leader -> follower: the metadata of the snapshot the shell is streaming
	MsgSnapshotReply  MessageKind = 14 // follower -> leader: installed up to Match, or Reject with Refused
	MsgTimeoutNow     MessageKind = 15 // leader -> transferee; Raft thesis, section 3.10
	MsgTransfer       MessageKind = 16 // any -> leader: asks for a leadership transfer to Target
	MsgRemoved        MessageKind = 17 // any -> a member that a committed configuration removed (its tombstone)
	MsgAcknowledged   MessageKind = 18 // voter -> the proposer of an entry: the leader's log is durable here up to Match
	MsgLogQuery       MessageKind = 19 // reader -> voters: how far does your log go? Query names the question
	MsgLogQueryReply  MessageKind = 20 // voter -> reader: Last, Unlogged; Query repeated
	MsgRecord         MessageKind = 22 // proposer -> voters but the leader, itself included: Proposals to record
	MsgRecorded       MessageKind = 23 // voter -> proposer: Verdicts
	MsgFastPropose    MessageKind = 24 // proposer -> leader: Proposals to answer before they have committed, if it can be
	MsgFast           MessageKind = 25 // leader -> proposer: Verdicts with replies; its log has them durably
	MsgOrphans        MessageKind = 26 // voter -> leader: Verdicts that name proposals recorded long ago

	lastMessage = MsgOrphans
)

// Message is anything one member says to another. One struct serves all kinds: a field that a kind does not name is
// zero and not encoded. Fields that belong together are a struct of their own, embedded.
type Message struct {
	Kind MessageKind
	From MemberID
	To   MemberID
	Term Term
	// Config is the configuration in force at the sender; with proposals, the one that they are bound to: a leader under
	// another one refuses them and says which.
	Config ConfigID
	Commit Index // append, heartbeat, snapshot offer: the leader's commit index
	// Durable is, in an append and a heartbeat, up to where the leader's own log is durable in this term; in the answers, up
	// to where the follower's log is, whether it equals the leader's or not. Zero in an answer: it does not say.
	Durable Index
	// Prev is, in an append, the entry before Entries.
	Prev    Position
	Entries []Entry
	// Round is the leader's read round. Answers repeat it; that confirms the leader up to there. A heartbeat's answer repeats
	// the latest that came at all, an acknowledgement the latest that came with an append, a refusal that of its append.
	Round uint64
	// Last is the end of the sender's log: in votes, in their answers, and in the answer to a log query.
	Last Position
	// Match is the last entry up to which the sender's log is durable and equal to the leader's: in the follower's answers,
	// and in MsgAcknowledged. Its term lets the leader check that.
	Match  Position
	Reject bool // the answer is no
	Mismatch
	FollowerState
	Waited
	Ballot
	LogQuery
	// Proposals travel to the leader, or to voters that are to record them; Refusals back to the proposer.
	Proposals []Proposal
	Refusals  []Refusal
	// Due is, with MsgRecord and MsgFastPropose, when the receiver should look at it, in nanoseconds of Unix time: the same
	// for all receivers, so that they meet proposals in one order. Nothing but speed rests on it.
	Due      uint64
	Verdicts []Verdict // on proposals of the fast path
	Reads    []ReadIndex
	Snapshot *SnapshotMeta
	Target   MemberID // of a transfer of leadership
	// Force is set in a vote that a leadership transfer asked for: ignore the leader's lease. In MsgTimeoutNow it says that
	// the leader must go and sees no better member: a cordoned member obeys, too.
	Force bool
}

// Mismatch is, with Reject, what a follower could not use.
type Mismatch struct {
	// Refused is what did not match or could not be installed: the Prev of an append, the position of a snapshot.
	Refused Position
	// Hint is, with a refused append, the follower's best guess of the last common entry: at or below Refused, or the base of
	// its log, durable, if that is above.
	Hint Position
}

// FollowerState is what a follower's answers say beside Match.
type FollowerState struct {
	// Received is, in a heartbeat's answer, up to where the sender's log equals the leader's, durable or not. Leaders of builds
	// before ADR 48 take a loss from it. Those after it do not: heartbeats overtake entries.
	Received Index
	// Patience is for how long after it heard the leader it helps to elect no other member, in microseconds; zero if it
	// promises nothing. A leader lease rests on that.
	Patience uint64
}

// Waited says what the news of a message waited for. The protocol does not read it; only logs and spans do.
// The times are what one member says of itself, at most about an hour.
type Waited struct {
	// WaitedFor is the member whose word was the last that the leader needed: for Commit, in an append and a heartbeat, and
	// for the reads of a MsgReadReply. NoMember: the leader does not say.
	WaitedFor MemberID
	// DiskTook is how long a write to a log took, in microseconds, from when it was asked for until it was on disk: in an
	// answer that waited for the sender's disk, of that disk; beside WaitedFor, of the disk of that member. Zero: it is not
	// known, or no disk was waited for.
	DiskTook uint32
	// AllTook is, beside WaitedFor, how long the leader waited for the commit, in microseconds, from when it had the entry.
	AllTook uint32
}

// Ballot is what votes and their answers carry beside Last.
type Ballot struct {
	Committed Position // the last entry that the sender knows to be committed
	Records   []Record // with a granted vote: what the voter has that was accepted, or answered, before
}

// LogQuery is a reader's question to the voters how far their logs go, and their answer.
type LogQuery struct {
	Query uint64 // the highest id of its reads, or zero if the leader alone is asked
	// Unlogged is set in the answer if writes may have been answered that are not in the sender's log.
	Unlogged bool
}

// ReadIndex asks for, or answers with, the index up to which the reader must have applied (Raft thesis, section 6.4).
type ReadIndex struct {
	ID    uint64 // drawn by the reader; grows on that member, also across restarts
	Index Index  // zero in the question
}

// Refusal says that a proposal did not enter the log and never will through this message.
type Refusal struct {
	ID     ProposalID
	Reason RefusalReason
	Config ConfigID // the configuration in force at the leader
}

// reasonTexts say what is wrong, as a person would.
var reasonTexts = [...]string{
	ReasonNone:            "nothing is wrong",
	ReasonNoLeader:        "nobody leads, or leadership is being handed over",
	ReasonBusy:            "too much is waiting",
	ReasonStaleConfig:     "the configuration is no longer the one that was expected",
	ReasonChangePending:   "another membership change is under way, or the leader is new and has not committed anything yet",
	ReasonMemberExists:    "the member id is in use",
	ReasonPeerURLExists:   "a member with this peer URL exists",
	ReasonMemberNotFound:  "there is no such member",
	ReasonMemberRemoved:   "the member was removed for ever",
	ReasonNotLearner:      "only a learner can be promoted",
	ReasonLearnerLags:     "the learner has not caught up with the leader",
	ReasonLastVoter:       "the change would leave no voter",
	ReasonQuorumLost:      "the change would leave no majority of voters that answer and have caught up",
	ReasonTooManyLearners: "there are too many learners",
	ReasonBadRequest:      "the request names no change, or a member twice, or is no command that the leader knows",
	ReasonProtocol:        "the protocol cannot make this change",
	ReasonTooLate:         "the change can no longer be aborted",
	ReasonNoChange:        "there is nothing to change, or no change to abort",
	ReasonBound:           "the member is bound to a data directory already",
	ReasonUnbound:         "the member is not bound to a data directory yet: it has not been heard",
	ReasonAllCordoned:     "no voter would be left that is not cordoned: somebody must lead",
}

func (r RefusalReason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return "unknown reason"
}

// RefusalReason says why a proposal or change was refused. Only ReasonNoLeader and ReasonBusy are worth a retry.
type RefusalReason uint8

const (
	ReasonNone            RefusalReason = 0
	ReasonNoLeader        RefusalReason = 1  // no member leads, or leadership is being handed over
	ReasonBusy            RefusalReason = 2  // too many uncommitted bytes
	ReasonStaleConfig     RefusalReason = 3  // the expected configuration is not the one in force
	ReasonChangePending   RefusalReason = 4  // another change is in flight, or no entry of this term has committed
	ReasonMemberExists    RefusalReason = 5  // the id is in use
	ReasonPeerURLExists   RefusalReason = 6  // a peer URL is in use
	ReasonMemberNotFound  RefusalReason = 7  // no such member
	ReasonMemberRemoved   RefusalReason = 8  // the id has a tombstone
	ReasonNotLearner      RefusalReason = 9  // only a learner can be promoted
	ReasonLearnerLags     RefusalReason = 10 // the learner has not caught up
	ReasonLastVoter       RefusalReason = 11 // the change would leave no voter
	ReasonQuorumLost      RefusalReason = 12 // the new configuration would have no reachable quorum
	ReasonTooManyLearners RefusalReason = 13
	ReasonBadRequest      RefusalReason = 14 // the request does not decode or names nothing
	ReasonProtocol        RefusalReason = 15 // the protocol cannot make this change
	ReasonTooLate         RefusalReason = 16 // the change can no longer be aborted
	ReasonNoChange        RefusalReason = 17 // there is no change to abort, or the request changes nothing
	ReasonBound           RefusalReason = 18 // the member is bound to another storage id
	ReasonUnbound         RefusalReason = 19 // others are bound, and the member that is to vote is not
	ReasonAllCordoned     RefusalReason = 20 // every voter would be cordoned

	lastReason = ReasonAllCordoned
)

// WaitsForDisk reports whether a message says how long the sender's disk took, if it waited for that.
func (k MessageKind) WaitsForDisk() bool {
	return k == MsgAppendReply || k == MsgAcknowledged || k == MsgRecorded || k == MsgFast
}

// FromLeader reports whether only the leader of its term sends this kind.
func (k MessageKind) FromLeader() bool {
	switch k {
	case MsgAppend, MsgHeartbeat, MsgSnapshotOffer, MsgTimeoutNow:
		return true
	}
	return false
}

// MaxOrphans is how many proposals one MsgOrphans asks about at most.
const MaxOrphans = 256

// SizeBytes estimates the encoded size of a message from above, cheaply enough to do each time that one is sent or arrives.
func (m *Message) SizeBytes() int {
	size := 128 + 48*len(m.Refusals) + 20*len(m.Reads) + 48*len(m.Verdicts) + 80*len(m.Records)
	for i := range m.Verdicts {
		size += len(m.Verdicts[i].Reply)
	}
	for i := range m.Records {
		size += len(m.Records[i].Payload)
	}
	for i := range m.Entries {
		size += m.Entries[i].SizeBytes()
	}
	for i := range m.Proposals {
		size += len(m.Proposals[i].Payload) + 64
	}
	if m.Snapshot != nil {
		size += 4 << 10
	}
	return size
}
