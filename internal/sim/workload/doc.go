// Package workload is the clients of a simulated cluster: writers, readers, tenants of leases, watchers and one that
// compacts.
//
// A client does one thing at a time through one member, waits for the answer or its patience to end, and tells package
// check what it asked, when, and what came back. Values are unique, so that the log tells what became of a write
// without answer. Clients know nothing of consensus: they use what a Member of the API would offer.
//
// Native clients choose the ids of their writes, and do what package client does, with its code (writer.go).
//
// Everything belongs to the goroutine of the simulated world.
package workload
