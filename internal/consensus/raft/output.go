package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// Output is what the caller must do after a Step. The fields stand in the order in which they are performed. Steps may go on
// meanwhile, as long as persist requests reach the disk, and sends the network, in the order of the Steps.
type Output struct {
	// Config is set when another configuration came into force here: appended, truncated or installed. It comes first: what
	// is sent may be for members that only this configuration names.
	Config *ConfigInForce

	// Send may leave at once, before anything is on disk.
	Send []consensus.Message

	// Seq numbers the persist request that Hard, Reset, Entries and Records form together: one write. It is zero if there is
	// nothing to persist. Once the request is durable, Persisted{Seq} is due. Many may be under way; they complete in order.
	Seq  uint64
	Hard *consensus.HardState
	// Reset makes the log begin anew after this position: a snapshot was installed, what was logged before is gone. It comes
	// before Entries.
	Reset *consensus.SnapshotMeta
	// Entries are appended to the log on disk, which is first truncated from Entries[0].Index on.
	Entries []consensus.Entry
	// Records enter the pool on disk or leave it.
	Records []consensus.RecordChange
	// SendAfter may leave only once Seq is durable, or, if Seq is zero, once every persist request before is: votes and
	// acknowledgements promise what is on disk. They may be overtaken by what later Steps send.
	SendAfter []consensus.Message
	// Evaluate is answered, like SendAfter, once Seq is durable.
	Evaluate []Evaluation

	// Install asks the shell to swap the store for the snapshot that it received; answered by SnapshotInstalled. What was
	// handed out in Apply by earlier Steps is applied (or skipped) first. Nothing is handed out until the answer, so that
	// Install and Apply are never both set.
	Install *consensus.SnapshotMeta

	// Inferred is what this member found committed by itself, before the leader said so: the entries after the first index,
	// up to the second. It is for counts only, and comes before Apply, with which the proposals among them end.
	Inferred *[2]consensus.Index

	// Apply is committed and durable here, consecutive, handed out once; answered by Applied.
	Apply []consensus.Entry

	// StopSnapshot names followers to whom a snapshot is streamed that has become useless: the log no longer has what
	// follows it. SnapshotSent is due all the same. It comes before NeedSnapshot.
	StopSnapshot []consensus.MemberID
	// NeedSnapshot asks the shell to stream a snapshot of the applied state to a follower; answered by SnapshotSent.
	NeedSnapshot []SnapshotRequest

	// Decided are proposals of this member that are decided: they will be applied at that revision, with that result. Their
	// proposers may be answered at once.
	Decided []tally.Decision

	Reads       []consensus.ReadIndex // answered: serve each once applied >= Index
	FailedReads []uint64              // not answered and never will be: ask again
	Refusals    []consensus.Refusal   // of this member's own proposals

	// Events are for logs, metrics and scripts. Nothing depends on them.
	Events []Event
}

// ConfigInForce is a configuration and its id.
type ConfigInForce struct {
	ID     consensus.ConfigID
	Config consensus.Config
	// Others are the members of other configurations that the log had when this one came into force, sorted by their ids.
	// One of them may lead: an entry that is not committed may be undone.
	Others    []consensus.Member
	Protocol  consensus.Protocol // by which it came; zero for the first configuration
	Committed bool
	Settled   bool
}

// Evaluation asks for the results of entries that the leader took on the fast path.
type Evaluation = fast.Evaluation

// SnapshotRequest names a follower that needs entries which the log no longer has.
type SnapshotRequest struct {
	To consensus.MemberID
}
