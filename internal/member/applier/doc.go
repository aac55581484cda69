// Package applier applies what has committed to a member's store.
//
// An Applier takes work in its order: entries, snapshots that replace the store, and whether this member leads. It
// applies entries in batches, tells those who wait for them, then the core, and has package upkeep and the Receiver
// drop what is not needed any more. It has no goroutine, clock or lock: the apply lane (package lanes) drives it, the
// simulator by events.
//
// Invariants:
//  1. Entries are applied in the order of their indexes, each once in a life of the store.
//  2. A snapshot replaces the store only between batches, and all entries before it are applied or replaced.
//  3. The core learns that something was applied only after those who wait for it.
//  4. An error while a batch is applied ends the member. One while a snapshot is installed does so only once the switch
//     to the new store may be durable; before that the old store serves on.
//
// All methods belong to one goroutine.
package applier
