// Package timings measures how long the parts of requests take, for metrics with etcd's names and meanings.
//
// It only takes notes: no call is slowed, refused or logged by it. The gate (rpc/gate) measures calls as a whole, and
// kv/counts counts the work of the state machine.
//
// The main type is Timings.
//
// Invariants:
//  1. Observing costs a few atomic additions, and never waits.
//
// All methods may be called concurrently.
package timings
