// Package snapshots sends the store to followers that are too far behind for the log, and receives it from a leader.
//
// A Sender makes a checkpoint of the store and streams it; writes go on meanwhile. It also gives consistent copies to
// backups. A Receiver verifies what a leader streams and keeps the last of it until the core asks to install it.
// Installing is up to the goroutine that applies, and to package datadir.
//
// It is not the format of a snapshot (package storage/snapshot), and it decides nothing: the core says who needs one,
// and when.
//
// Invariants:
//  1. A store is held for the time that a checkpoint of it takes, not for the time that sending takes.
//  2. A received snapshot is opened and checked before it is acknowledged.
//  3. At most one received snapshot is kept, and none that shows nothing beyond what is applied.
//
// All methods may be called concurrently.
package snapshots
