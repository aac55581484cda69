// Package node is the body of a member's loop: it feeds inputs to the core and performs what comes out, in order.
//
// A Node owns the core (package raft), what is proposed (package proposals), the reads that wait, and the Scheduler
// that says when to offer (package offers). It delays and stamps offers, too. It has no goroutine and no clock: time is
// ticks, and everything with an effect goes through Ports. The loop lane (package lanes) runs it, in a process
// and in the simulated world of package sim. It is neither the log nor the state machine.
//
// Invariants:
//  1. An output that promises durability goes with the persist request that it depends on.
//  2. Entries are handed out in log order, each once, and only when they are durable here.
//  3. A read is served only after everything below its read index has been applied.
//
// A Node is used by one goroutine, but for AddReader, DropReader, Awaits, Resolve, Restored, Read and the tables that
// Proposals and Clients return: those any goroutine may use.
package node
