// Package mvcc is the versioned store: every change of a key is kept under its revision until compaction deletes it.
//
// A Store reads at any revision that is not compacted; its one Writer applies commands. Both work on an engine.Engine and keep
// no index of keys in memory: a range is one iterator over keys ordered by (user key, newest first), and a bounded cache holds
// current versions. The rows of leases, alarms and results are beside it in the engine, under table bytes of their own, written
// through the same Writer so that one batch holds all effects of a command.
//
// Invariants:
//
//  1. A revision, once published, never changes: a read at it gives the same answer until it is compacted.
//  2. The writer makes changes visible in the order engine, cache, published revision. A reader takes the published
//     revision first and reads after it, so its view is complete up to that revision.
//  3. A reader takes its iterator first and checks the compact revision afterwards. Physical deletion follows the
//     published compact revision, so an iterator that passes the check has every row it needs.
//  4. The cache never holds a version that is not the newest one known to the writer for that key (see cache.go).
//  5. State that members do not share (cache, physical compaction, flushes) never changes an answer.
//
// A Store may be used by any number of goroutines, beside one goroutine that holds the Writer and one that calls CompactStep.
package mvcc
