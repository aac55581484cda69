// Package offers decides when and how a member offers proposals to all voters at once, and in which order it looks at
// those of others.
//
// A Path is one member's: its offer policy (Policy), the stamps of what it offers (Stamps), the deadline queue of what it is
// offered (Queue), and who has proposed lately (Proposers). Room bounds what native clients have offered and nobody has
// looked at. None of this concerns safety, which is the business of packages raft and witness: it saves round trips and
// conflicts. The idea of the deadlines is that of deadline-ordered multicast (Nezha, VLDB 2023).
//
// A native client (package client) uses Policy, Stamps and Ahead for what it offers itself.
//
// The package is pure: no clock, no goroutine, no lock. Time is an argument, so that the simulator can run it.
//
// Invariants:
//  1. Stamps of one member grow.
//  2. A message waits for its stamp for at most maxWait; messages that wait leave in the order of their stamps.
//  3. What clients have offered is bounded, for each client and for all.
//
// Nothing here may be used concurrently.
package offers
