// Package applier applies what has committed to a member's store.
//
// An Applier takes work in its order: entries, snapshots that replace the store, and whether this member leads. It applies
// entries in batches, tells who waits for them and the core, and sees to it that the log, received snapshots and old history
// do not grow for ever. It has no goroutine, clock or lock: package member drives it in one goroutine, the simulator by events.
//
// Invariants:
//  1. Entries are applied in the order of their indexes, each once in a life of the store.
//  2. A snapshot replaces the store only between batches, and all entries before it are applied or replaced.
//  3. The core learns that something was applied only after those who wait for it.
//  4. An error of a batch ends the member. An error of a snapshot does only once the new store may count.
//
// All methods belong to one goroutine.
package applier
