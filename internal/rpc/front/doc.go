// Package front serves gRPC over package h2: services that are registered as with a grpc.Server, unchanged, and beside them
// prompt methods, whose calls go on without a goroutine.
//
// A prompt method is called by the goroutine that reads the connection, must not wait, and has the call answered later by the
// goroutine that completes it. Those answers are collected: one goroutine encodes all that wait, and then writes to each
// connection once. A prompt method may decline a call, which then goes the way of all others: a goroutine with a context.
//
// The main type is Server. The messages of gRPC are in message.go, what is in the fields of a request in request.go.
//
// Invariants:
//  1. A prompt method never waits, and neither does what it leaves to be finished, unless that has a goroutine (Call.Go).
//  2. A message is refused by its length before it is kept.
//  3. A service sees of a call what it would see behind a grpc.Server: metadata, deadline, peer, cancellation.
//
// All methods may be called concurrently.
package front
