// Package joins runs, in a simulated world, what happens when a process joins by itself: the process (Process), the member that
// it asks (Member), what it asks for (Draw), and the laws of it (Laws).
//
// Members answer such a process in goroutines that block: for a read, for a change, for a moment. Here that code runs
// unchanged as one of package routines. The decisions are those that ship: autopilot.Joiner, autopilot.JoinQuestion, and
// autopilot.Requests at the leader (Leader).
//
// It is neither machine nor network: package sim carries questions and answers, and breaks both.
//
// Invariants:
//  1. A routine that was ended tells nobody anything.
//
// Everything belongs to one goroutine, that of its world.
package joins
