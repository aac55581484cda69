// Package engine is an ordered key-value store with atomic batches: the port under the replicated state.
//
// It is not a database of its own: it has no log. A batch is visible at once and durable only after the next flush; the
// member's log repeats what a crash took. There are two engines: Open gives Pebble (the only package that imports it),
// OpenMem gives a deterministic one in memory for the simulator.
//
// Invariants of both:
//
//  1. A batch is atomic: after a crash all of it is there or none.
//  2. Batches become durable in the order of their commits: after a crash the store is a prefix of what was committed.
//  3. GetDurable answers from that prefix, so what it shows is never taken back by a power loss.
//  4. An iterator sees the store as it was when it was made, whatever is written later.
//  5. Keys are ordered bytewise. Keys of the versioned table ('d', see Split) have a prefix, which filters and
//     NextPrefix understand, and a suffix of SuffixLen bytes.
//
// All methods of an Engine may be called concurrently. A Batch and an Iterator belong to one goroutine at a time.
package engine
