// Package counts counts what the store of a member did since its process started, for metrics.
//
// It decides nothing, and has no clock: who knows a time gives it. The state machine counts what it applies, so that every
// member counts every write, as etcd's members do; the services count the ranges that they read beside it. One Counts
// outlives the stores that snapshots replace.
//
// The main type is Counts.
//
// Invariants:
//  1. Nothing that is replicated depends on a count.
//
// All fields and methods may be used concurrently, but for Counts.Timed, which belongs to who applies.
package counts
