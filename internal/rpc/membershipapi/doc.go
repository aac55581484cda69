// Package membershipapi serves the native Membership service: plans and jobs that change the cluster, what the cluster is
// like, and a stream of what changes.
//
// It turns messages into the words of internal/membership and back. It plans nothing and carries nothing out: the member
// does, or asks the leader. etcd's Cluster service is in internal/rpc.
//
// The main type is Service. One poller asks the leader for all watchers; a watcher gets the difference to what it saw.
//
// Invariants:
//  1. Every fault of a request that can be told without the cluster is refused before the leader is asked, all at once.
//  2. Obstacles of a plan are part of the answer, not an error.
//  3. A watcher that reads slowly misses states between, and never the latest.
//  4. Errors are the native API's own: errors.go has the table.
//
// All methods may be called concurrently.
package membershipapi
