// Package datadir creates, opens, checks and closes the data directory of one member.
//
//	boots            identity of the data, and how often it was opened; written last, so that it marks a finished creation
//	wal/             the log, package wal; --wal-dir puts it elsewhere
//	stores/CURRENT   names the current store, package snapshot
//	stores/N/        generation N of the store, package engine
//	snapshots/       snapshots that are sent or received; emptied at each start
//	peers, lost, founding, dropped, forced
//	                 small records of other members and of recoveries: smallfiles.go
//	addresses        peer URLs of members, as the operator gave them: addresses.go
//	restored         in a directory that was restored and has not started: restored.go
//
// It is not the member, which runs on an open directory, and it does not judge what other processes claim (package
// identity). Create makes a directory, Open returns it as Data, Inspect reads one of a stopped member and changes
// nothing.
//
// Invariants:
//  1. Log, store and boots file carry one identity. Open refuses a directory whose parts are of different members, or
//     of which one part is older than the others.
//  2. A start is durable, first in the log and then in the boots file, before the member sends anything.
//  3. The store may be ahead of the log only by a snapshot that CURRENT names.
//  4. A store is closed when the next one has replaced it and its last reader has released it.
//
// Stores may be used by any goroutine, Persisted too. Everything else of Data belongs to the goroutine that applies.
// The caller holds the lock of the directory.
package datadir
