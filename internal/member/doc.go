// Package member runs one member: goroutines around a Node (package node), which the simulator runs as it is.
//
// One goroutine, the loop, owns the Node; one writes the WAL (everything that waits in one sync); one applies. It is not
// the core (package raft decides) and not the API (package rpc speaks etcd).
//
// Laws:
//  1. A message that promises durability leaves only after the sync that covers it.
//  2. Entries are applied in log order, each once, and only when they are durable here.
//  3. A proposal is repeated under its own id until it is applied, refused for good, or given up by its caller, so
//     it happens at most once.
//  4. A read is served only after everything below its read index has been applied.
//
// All methods of Member may be called concurrently.
package member
