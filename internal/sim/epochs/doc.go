// Package epochs is what a simulated member does about other epochs of its cluster: package epoch, as in a real member,
// and what the checkers want to know beside it. It also recovers survivors, by the same code as `quorate recover`.
//
// Invariants:
//  1. A member does not campaign before it has asked its peers once.
//  2. What Recover writes is what an operator's command writes: one append to the log of a member that does not run.
//
// Not safe for use by several goroutines.
package epochs
