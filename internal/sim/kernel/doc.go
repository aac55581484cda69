// Package kernel is virtual time: scheduled events, and clocks that are wrong and drift (a discrete-event simulation).
//
// A Schedule takes the place of the operating system's timers in simulations (packages sim and sim/lab). It knows
// nothing of members and messages.
//
// Invariants:
//  1. Time moves only to the next event, or by Pass. It never goes back.
//  2. Events happen in the order of their times, and those of one time in the order in which they were scheduled.
//
// A Schedule belongs to one goroutine.
package kernel
