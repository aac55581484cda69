// Package sim runs whole clusters in one goroutine, under virtual time and every fault we can name.
//
// A World has N members with the real core, log, store and state machine; only the clock, the network and the disk are
// simulated, together with the goroutines that package member has around a Node (package shell). A seed draws the cluster, the
// faults and the load (package plan). In the first phase everything may go wrong and nothing may be lost; in the second phase
// the faults end, and the members must answer and become equal. Other packages: check has the laws, workload the clients, disk
// the disk, kernel the time, stores the engines, guard the checks of identities, places the network addresses, changes the
// changes of membership, joins the processes that join, users the clients with user names, permits the laws of their
// permissions, routines code that blocks, breaks the negative controls, actions and diary the traces of a run, dice the
// random draws. The simulator does not test goroutines or gRPC, and Pebble only on request: other tests do.
//
// Invariants:
//  1. The same seed gives the same events, to the byte: no wall clock, no goroutine, no map order, no global chance. Only
//     the goroutines of Pebble, where it is asked for, make exceptions.
//  2. Checkers see what members do, not what members say they did.
//  3. Each checker has a negative control: a switch that breaks a law, which the checker must find.
//
// A World belongs to one goroutine; different Worlds may run at the same time. docs/simulation.md shows how to use it.
package sim
