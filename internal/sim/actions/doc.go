// Package actions writes down what simulated cores do, for a reader that knows the specification only (package model/trace).
//
// A Writer takes the messages, and a Member, one for each machine, what its core persists, commits and decides. It writes
// one step of the specification for each as a line of JSON.
//
// Invariants:
//  1. It decides nothing: a run is the same with and without a Writer. That there is none is said by nil.
//  2. Steps are in the order in which they happened.
//
// A Writer belongs to the goroutine of its simulated world.
package actions
