// Package epochs is what a simulated member does about other epochs of its cluster: package epoch, as in a real member, with
// the state that the checkers need beside it. It also recovers survivors, by the same code as `quorate recover`.
//
// Invariants:
//  1. A member does not campaign before it has asked its peers once.
//  2. Recover writes the same as an operator's command: one append to the log of a member that does not run.
//
// Not safe for use by several goroutines.
package epochs
