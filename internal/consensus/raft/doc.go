// Package raft puts commands in order: election, replication, commit, reads and single-server membership change.
//
// A Replica is the state of one member. It is a function: Step consumes the inputs that wait (ticks, messages,
// proposals, completions of earlier outputs) and returns one Output, which the caller performs. It does no I/O, reads
// no clock, starts no goroutine and keeps no lock; time is ticks, chance is a small generator seeded in Options.
// What an entry means is not its business, and the fast path is package curp's, which wraps this one.
//
// Laws kept here (Ongaro, Ousterhout: "In Search of an Understandable Consensus Algorithm", figure 3, and Ongaro's
// thesis, chapters 3, 4 and 6):
//  1. At most one leader per term: votes and terms are durable before a message that depends on them leaves.
//  2. applied <= min(commit, durable) <= last: only entries that are committed and durable here are applied.
//  3. Committed entries are never truncated; a leader commits by counting only entries of its own term.
//  4. The configuration in force is the last one in the log, else the snapshot's; truncation undoes it.
//  5. A read index is handed out only when a quorum has confirmed the leader after the read arrived, and the log up to
//     that index has committed under this leader.
//
// A Replica belongs to one goroutine. Slices in an Output share memory with the log and are never written to again.
package raft
