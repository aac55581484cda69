// Package raft puts commands in order: election, replication, commit, linearizable reads, snapshots and membership
// change (Ongaro, Ousterhout: "In Search of an Understandable Consensus Algorithm", and Ongaro's thesis, chapters 3, 4
// and 6).
//
// The main type is Replica, the state of one member. It is a function: Step consumes the inputs that wait (ticks,
// messages, proposals, completions of earlier outputs) and returns one Output, which the caller performs. It does no
// I/O, reads no clock, starts no goroutine and keeps no lock; time is ticks, chance is a small generator seeded in
// Options. What a command means is not its business. The log, the configurations, the rules of a change, the fast path
// and the judging of messages are packages beside this one: raftlog, configs, reconfig, fast, filter.
//
// A part owns its state and is made with the parts that it uses (wire); none knows the Replica, which dispatches
// (step.go):
//
//	hardstate.go     hardState and softState; journal.go: log and configurations, changed together
//	outbox.go        the Output of the Step; gate.go: which messages are looked at
//	election.go      when to campaign, and votes received; vote.go: votes given; role.go: changes of role
//	peers.go         peerSet: who was heard lately, who has caught up; rounds.go: rounds and leader lease
//	replication.go   what followers are sent, and what commits; follower.go: the log of the leader that it follows
//	reads.go         leaderReads; read_majority.go: reads confirmed without the leader
//	changes.go       of the configuration; transfers.go: of leadership
//	admission.go     proposals into the leader's log; forwards.go: to the leader; inference.go: inferred commits
//
// Invariants:
//  1. At most one leader a term: votes and terms are durable before a message that depends on them leaves.
//  2. applied <= min(commit, durable) <= last: only entries that are committed and durable here are applied.
//  3. Committed entries are never truncated; a majority is counted for entries of the own term only.
//  4. A read index is handed out only if nobody else can have committed more when the read arrived: a quorum has echoed a
//     round that began later, promised the leader a lease, or answered how far its logs go.
//
// A Replica belongs to one goroutine. Slices in an Output share memory with the log and are never written to again.
package raft
