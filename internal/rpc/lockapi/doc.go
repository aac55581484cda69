// Package lockapi is etcd's Lock and Election services: locks and leaders that are keys with leases.
//
// A caller that wants a lock or the leadership of a name writes the key name/lease, with the lease in hexadecimal digits, and
// waits until every key of that name that was created earlier is gone. So the keys are the queue, in the order of their create
// revisions, and a lease that ends takes its owner out of it. Each waits for the key just before its own alone.
//
// The services hold no state. They call KV, Lease and Watch in the name of their caller, so a user that may not write the key
// may not take the lock.
//
// The main types are Lock and Election, which share a Store, the port to those services.
//
// Invariants:
//  1. A caller is told that it holds a lock only when no key of that name is older than its own, which still exists.
//  2. A caller that gives up waiting leaves no key behind, but for one whose fate it does not know.
//  3. Errors are etcd's, in text and code: etcd sends most of these with the code Unknown.
//
// All methods may be called concurrently.
package lockapi
