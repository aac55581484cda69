// Package model is an explorer of the protocol, not of the code: a small model of Raft, the fast path, reads and
// membership changes at the level of atomic protocol steps, and the laws they must keep. It answers a question that
// the simulator cannot: is each rule of the design needed, and do the rules together suffice, in schedules that a
// running cluster meets once in a year.
//
// Each rule has a switch in Rules that drops or changes it; the zero Rules is the full protocol. Three searches use it:
//
//   - Walk takes random walks, biased by macros that queue likely runs of steps. A finding is shrunk and replayed.
//   - Search goes breadth first through small bounds, with symmetry reduction, until they are complete or too large.
//   - Mutate drops one rule at a time and looks for a broken law. A rule whose absence breaks nothing is marked as
//     redundant with the reason, or the walks are too weak: the table in docs/simulation.md says which.
//
// What it is not: it has no time (but ticks for leader leases), no liveness, and logs of at most 16 entries. Messages are
// kept for ever, so loss, delay, duplication and reordering need no rules of their own. Compaction needs none either:
// what a log has dropped is what was applied, and nothing looks at applied entries but the store.
//
// Everything is reproducible from the seed and the number of the walk. Nothing here may be called concurrently.
//
// Sources: Ongaro, "Consensus: Bridging Theory and Practice" (2014) for Raft, leases and transfer; Park and Ousterhout,
// "Exploiting Commutativity For Practical Fast Replication" (NSDI 2019) for records and recovery; ADR 0002, 0013 and 0014
// for what Quorate adds.
package model
