// Package timings measures how long the parts of requests take, for metrics with etcd's names and meanings.
//
// It only takes notes: no call is slowed, refused or logged by it. What passes a call as a whole is the gate's to measure
// (rpc/gate), what the state machine does is counted by kv/counts.
//
// The main type is Timings.
//
// Invariants:
//  1. Observing costs a few atomic additions, and never waits.
//
// All methods may be called concurrently.
package timings
