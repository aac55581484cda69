// Package member runs one member: it feeds inputs to the pure core and performs what comes out, in order.
//
// A Node is the loop's body without goroutines, locks or clocks; the simulator runs it as it is. A Member puts
// goroutines around a Node: one loop that owns it, one that writes the WAL (everything that waits in one sync), one
// that applies. It is not the core (package raft decides) and not the API (package rpc speaks etcd).
//
// Laws:
//  1. A message that promises durability leaves only after the sync that covers it.
//  2. Entries are applied in log order, each once, and only when they are durable here.
//  3. A proposal is repeated under its own id until it is applied, refused for good, or given up by its caller, so
//     it happens at most once.
//  4. A read is served only after everything below its read index has been applied.
//
// All methods of Member may be called concurrently; those of Node from one goroutine.
package member
