// Package raftlog is the log of a replica in memory: its entries, how far they are committed, handed out, applied and on
// disk, and how much memory they take.
//
// The main type is Log. It is bookkeeping: it decides neither what is appended or truncated nor what is committed (package
// raft does), and it neither writes nor reads a disk. A Log belongs to one goroutine; slices that it returns share its memory
// and stay as they are.
//
// Invariants:
//  1. base <= applied <= handed <= min(commit, durable), and commit and durable do not exceed the last index.
//  2. Committed entries are never truncated.
//  3. An entry is never overwritten in place: a slice that was returned may be read on.
package raftlog
