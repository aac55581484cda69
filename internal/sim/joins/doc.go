// Package joins runs, in a simulated world, a process that joins by itself: the process (Process), the member that it asks
// (Member), its request (Draw), and the laws of joining (Laws).
//
// Members answer such a process in goroutines that wait for a read, for a change, or for a moment. Here that code runs
// unchanged as a routine of package routines. The decisions are those that ship: autopilot.Joiner, autopilot.JoinQuestion, and
// autopilot.Requests at the leader (Leader).
//
// It simulates neither machines nor the network: package sim carries questions and answers, and breaks both.
//
// Invariants:
//  1. A routine that was ended calls no callback any more.
//
// Everything belongs to one goroutine, that of its world.
package joins
