// Package raft puts commands in order: election, replication, commit, linearizable reads, snapshots and membership
// change (Ongaro, Ousterhout: "In Search of an Understandable Consensus Algorithm", and Ongaro's thesis, chapters 3, 4
// and 6).
//
// The main type is Replica, the state of one member. It is a function: Step consumes the inputs that wait (ticks, messages,
// proposals, completions of earlier outputs) and returns one Output, which the caller performs. It does no I/O, reads no clock,
// starts no goroutine and keeps no lock; time is ticks, chance is a small generator seeded in Options. Replica does not
// interpret commands. The log, the configurations, the rules of a change, the fast path and the filter of messages are packages
// beside this one: raftlog, configs, reconfig, fast, filter.
//
// All state is declared in state.go: Replica is the state of a member in every role, leader the state that it has only
// while it leads. A leader is made when the member wins a term (becomeLeader) and dropped when it leads no more, so that
// nothing of it survives its term. The state following, a follower's knowledge of the leader's log, is reset in each term.
// Only the methods of hardState write the term and the vote, only journal.go the log and the configurations; a test of
// package tidy keeps that.
//
//	step.go          from inputs to the Output; gate.go: the messages that are dropped; outbox.go: the messages that leave
//	hardstate.go     term, vote and promise; journal.go: log and configurations, changed together
//	role.go          changes of role; election.go: when to campaign, and votes received; vote.go: votes given;
//	                 cordon.go: members that leave leadership to others
//	leader.go        the leader's life; peers.go: which members are active, and which have caught up;
//	                 rounds.go: rounds and leader lease; replication.go: appends to followers, and commits;
//	                 snapshot.go; reads.go: reads that wait; admission.go: proposals into the log, repeats.go: proposals
//	                 that are in it already; changes.go: of the configuration; transfers.go: of leadership
//	follower.go      the log of a follower; forwards.go: requests sent to the leader; requests.go: requests taken
//	                 here; inference.go: inferred commits; read_majority.go: reads confirmed without the leader
//	fast.go          the messages and entries of the fast path, which package fast decides
//
// Invariants:
//  1. At most one leader a term: votes and terms are durable before a message that depends on them leaves.
//  2. applied <= min(commit, durable) <= last: only entries that are committed and durable here are applied.
//  3. Committed entries are never truncated; a majority is counted for entries of the own term only.
//  4. A read index is handed out only if no other member can have committed more when the read arrived: a quorum has echoed a
//     round that began later, promised the leader a lease, or answered how far its logs go.
//
// A Replica belongs to one goroutine. Slices in an Output share memory with the log and are never written to again.
package raft
