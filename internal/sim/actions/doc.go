// Package actions writes the actions of simulated cores, for a reader that knows only the specification (package model/trace).
//
// A Writer takes the messages, and a Member, one for each machine, the writes, commits and decisions of its core. Each becomes
// one step of the specification, as a line of JSON.
//
// Invariants:
//  1. It decides nothing: a run is the same with a Writer and with a nil one.
//  2. Steps are in the order in which they happened.
//
// A Writer belongs to the goroutine of its simulated world.
package actions
