// Package sim runs whole clusters in one goroutine, under virtual time and every fault we can name.
//
// A World has N members with the real core, log, store and state machine; only the clock, the network and the disk are
// simulated, together with the goroutines that package member has around a Node (package shell). A seed draws the cluster,
// the faults and the load (package plan). In the first phase everything may go wrong and nothing may be lost; in the second
// the faults end, and the members must answer and become equal. Package check has the laws, package workload the clients,
// package disk the disk, package kernel the time, package stores the engines, guard who may speak, places what is at which
// address, epochs the meeting of epochs, changes the changes of membership, joins processes that join, users those who act
// in a user's name, permits what they may do, routines code that blocks, breaks the negative controls, actions and diary
// what is written down, dice the draws. It is not a test of goroutines or of gRPC, and of Pebble only if it is asked to:
// other tests are.
//
// Invariants:
//  1. The same seed gives the same events, to the byte: no wall clock, no goroutine, no map order, no global chance. Only
//     the goroutines of Pebble, where it is asked for, make exceptions.
//  2. Checkers see what members do, not what members say they did.
//  3. Each checker has a negative control: a switch that breaks a law, which the checker must find.
//
// A World belongs to one goroutine; different Worlds may run at the same time. docs/simulation.md shows how to use it.
package sim
