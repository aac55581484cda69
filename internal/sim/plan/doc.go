// Package plan draws what a seed decides before its world begins: how many members there are and how fast they are, what is
// set for all of them, the load, the weather in the network, and which faults there will be how often.
//
// Draw makes a Plan. The package knows the faults by name (Nemeses) and what each sets for the whole first phase; what a fault
// does when it strikes is package sim's.
//
// Invariants:
//  1. A seed has one plan. What Options ask for is drawn all the same, so that the rest of the plan stays as it is.
//  2. Faults of identity, and those that are only named, are drawn from streams of their own: a row more among them leaves the
//     seeds of all other faults alone.
//
// A Plan belongs to the goroutine of its world.
package plan
