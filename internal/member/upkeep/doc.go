// Package upkeep keeps the log and the store of a running member small, in the background and at a bounded rate.
//
// A Retainer says how far the log may be compacted behind what was applied, and flushes the store when the log would
// otherwise have to keep too much. A Compactor deletes, step by step, what a compaction of revisions made invisible,
// and counts keys.
// A Reclaimer gives the disk back what was deleted so. Defragment rewrites the store's tables on demand.
//
// It does not decide which revisions are compacted: clients do, or package server's automatic compaction.
//
// Invariants:
//  1. The log keeps what the store does not hold durably. The store writes no log of its own, so that after a crash its
//     end is applied again from the log.
//  2. Long work ends when the store that it works on is replaced, or when the member stops.
//
// A Retainer belongs to the goroutine that applies. A Compactor's methods may be called concurrently.
package upkeep
