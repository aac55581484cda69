// Package counts counts events in the store of a member since its process started, for metrics.
//
// It decides nothing, and has no clock: callers pass durations. The state machine counts the commands that it applies, so that
// every member counts every write, as etcd's members do; the services count the ranges that they read beside it. One Counts
// outlives the stores that snapshots replace.
//
// The main type is Counts.
//
// Invariants:
//  1. No replicated state depends on a count.
//
// All fields and methods may be used concurrently, but for Counts.Timed, which belongs to the goroutine that applies.
package counts
