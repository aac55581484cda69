// Package shell is a simulated process: what package member does in goroutines, as events in virtual time.
//
// A Process is one life of a member: its lanes (package member/lanes, which ships), its data directory, the leases, and what
// keeps log and store small. A Process is the host of its lanes: it gives each lane its turns in events, whose times are drawn.
// Faults, the network and the machine are not here: a Life gives a process what it needs of them.
//
// Invariants:
//  1. Nothing happens but in the events that a process makes by Life.After, which end with its life.
//  2. Checkers are told what a process does when it does it: what it writes, applies, and acknowledges.
//  3. Chance is drawn from Life.Rng only.
//
// A Process belongs to the goroutine of its simulated world.
package shell
