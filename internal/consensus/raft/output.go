package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// Output is the work of the caller after a Step. The caller performs the fields in their order. It may take more Steps
// meanwhile, if persist requests reach the disk, and messages the network, in the order of the Steps.
type Output struct {
	// Config is set when another configuration came into force here: appended, truncated or installed. It comes first: messages
	// may be for members that only this configuration names.
	Config *ConfigInForce

	// Commit is what this Step committed: for what operators are shown only. It comes before Send, whose messages say how long
	// the commit took.
	Commit Commit

	// Send may leave at once, before a write is durable.
	Send []consensus.Message

	// Seq numbers the persist request that Hard, Reset, Entries and Records form together: one write. It is zero if there is
	// nothing to persist. Once the request is durable, Persisted{Seq} is due. Many may be under way; they complete in order.
	Seq  uint64
	Hard *consensus.HardState
	// Reset makes the log begin anew after this position, since a snapshot was installed: all entries on disk are dropped. It
	// comes before Entries.
	Reset *consensus.SnapshotMeta
	// Entries are appended to the log on disk, which is first truncated from Entries[0].Index on.
	Entries []consensus.Entry
	// Records are added to the pool on disk, or dropped from it.
	Records []consensus.RecordChange
	// SendAfter may leave only once Seq is durable, or, if Seq is zero, once every earlier persist request is: votes and
	// acknowledgements promise entries that are on disk. Messages of later Steps may overtake them.
	SendAfter []consensus.Message
	// Evaluate is answered, like SendAfter, once Seq is durable.
	Evaluate []Evaluation

	// Install asks the shell to replace the store with the snapshot that it received; answered by SnapshotInstalled. The
	// entries that earlier Steps handed out in Apply are applied (or skipped) first. Nothing is handed out until the answer, so
	// that Install and Apply are never both set.
	Install *consensus.SnapshotMeta

	// Inferred are the entries that this member found committed by itself, before the leader said so: those after the first
	// index, up to the second. It is for counts only, and comes before Apply, with which the proposals among them end.
	Inferred *[2]consensus.Index

	// Ready is up to where the log is committed and durable here: for what operators are shown only. It comes before Apply,
	// with which the proposals among the entries end.
	Ready consensus.Index

	// Apply is committed and durable here, consecutive, and handed out once; answered by Applied.
	Apply []consensus.Entry

	// StopSnapshot names followers for which a snapshot on its way has become useless: the log no longer has the entries after
	// it. SnapshotSent is due all the same. It comes before NeedSnapshot.
	StopSnapshot []consensus.MemberID
	// NeedSnapshot asks the shell to stream a snapshot of the applied state to a follower; answered by SnapshotSent.
	NeedSnapshot []SnapshotRequest

	// Decided are proposals of this member that are decided: they will be applied at that revision, with that result. The
	// caller may answer their proposers at once.
	Decided []tally.Decision

	Reads       []consensus.ReadIndex // answered: the caller serves each once applied >= Index
	ReadsWaited consensus.Waited      // for which member Reads waited; for what operators are shown only
	FailedReads []uint64              // not answered, and never will be: the caller asks again
	Refusals    []consensus.Refusal   // of this member's own proposals

	// Events are for logs, metrics and scripts. No other code depends on them.
	Events []Event
}

// ConfigInForce is a configuration and its id.
type ConfigInForce struct {
	ID     consensus.ConfigID
	Config consensus.Config
	// Others are the members of other configurations that the log had when this one came into force, sorted by their ids. One
	// of them may lead: an entry that is not committed may be undone.
	Others    []consensus.Member
	Protocol  consensus.Protocol // of the change; zero for the first configuration
	Committed bool
	Settled   bool
}

// Evaluation asks for the results of entries that the leader took on the fast path.
type Evaluation = fast.Evaluation

// SnapshotRequest names a follower that needs entries which the log no longer has.
type SnapshotRequest struct {
	To consensus.MemberID
}
