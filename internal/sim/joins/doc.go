// Package joins runs, in a simulated world, what happens when a process joins by itself: the process (Process), the member that
// it asks (Member), what it asks for (Draw), and the laws of it (Laws).
//
// Members answer such a process in goroutines that block: for a read, for a change, for a moment. Here that code runs
// unchanged as one of Routines, and goes on in the event that it waits for. The decisions are those that ship:
// autopilot.Joiner, autopilot.JoinQuestion, and autopilot.Requests at the leader (Leader).
//
// It is neither machine nor network: package sim carries questions and answers, and breaks both.
//
// Invariants:
//  1. Of all routines at most one runs, inside an event: the same seed gives the same events.
//  2. A routine that was ended waits no more: every Wait returns false, and it tells nobody anything.
//
// Routines belong to one goroutine, that of their world.
package joins
