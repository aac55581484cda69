// Package offers decides when a member offers its proposals to all voters at once, how it stamps them, and in which
// order it handles the offers of others.
//
// A member has one Scheduler: it holds the offer policy (Policy), the stamps of the member's offers (Stamps), the
// deadline queue of the offers it receives (Queue), and which members have proposed lately. Setting is the flag
// --fast-path. A Budget bounds the bytes that native clients have offered and the core has not taken yet. Safety does
// not depend on this package but on packages raft, fast and witness; this package saves round trips and conflicts.
// Deadlines are those of deadline-ordered multicast (Nezha, VLDB 2023).
//
// A native client (package nativeclient) uses Policy, Stamps and Ahead for what it offers itself.
//
// The package is pure: no clock, no goroutine, no lock. Time is an argument, so that the simulator can run it.
//
// Invariants:
//  1. The stamps of one proposer grow.
//  2. A message waits until the time of its stamp, but at most maxWait; waiting messages leave in the order of their
//     stamps.
//  3. The bytes in a Budget are bounded, for each client and for all.
//
// Nothing here may be used concurrently.
package offers
