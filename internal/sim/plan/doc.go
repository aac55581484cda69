// Package plan draws the part of a world that a seed decides before the world begins: the number and speed of the members,
// their common settings, the load, the network's weather, and which faults strike, and how often.
//
// Draw makes a Plan. The package has the names of the faults (Nemeses) and the settings of each for the whole first phase;
// package sim performs their strikes.
//
// Invariants:
//  1. A seed has one plan. Settings that Options replace are drawn all the same, so that the rest of the plan stays as it is.
//  2. Faults of identity, and those that are only named, are drawn from streams of their own: a new row among them leaves the
//     seeds of all other faults alone.
//
// A Plan belongs to the goroutine of its world.
package plan
