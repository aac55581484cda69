// Package workload has the clients of a simulated cluster: writers, readers, tenants of leases, watchers and one that compacts.
//
// A client does one operation at a time through one member, waits for the answer or the end of its patience, and reports its
// request, the times and the answer to package check. Values are unique, so that the log shows the outcome of a write without
// an answer. Clients know nothing of consensus: they use what a Member of the API would offer.
//
// Native clients choose the ids of their writes, and do what package client does, with its code (writer.go).
//
// Everything belongs to the goroutine of the simulated world.
package workload
