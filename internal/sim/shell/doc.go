// Package shell is what package member does in goroutines, as events in virtual time.
//
// A Process is one life of a member: its Node, its data directory, and the parts that work beside each other: the loop,
// the writer of the log, the applier, the leases, and what keeps log and store small. What each of them does is written
// as one function; when it happens is drawn. Faults, the network and the machine are not here: a Life gives a process
// what it needs of them.
//
// Invariants:
//  1. Nothing happens but in the events that a process makes by Life.After, which end with its life.
//  2. Checkers are told what a process does when it does it: what it writes, applies, and acknowledges.
//  3. Chance is drawn from Life.Rng only.
//
// A Process belongs to the goroutine of its simulated world.
package shell
