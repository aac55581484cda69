// Package inproc calls gRPC services of this process without a network: for those who serve clients in another form (the JSON
// gateway), or do what takes several calls (locks and elections).
//
// A call passes the same interceptors, codec and limits as one that came over a connection, under the address and the
// certificates that the context of the caller has (peer.NewContext), and with the metadata that the caller sends on. Nothing of
// this process lends its own identity to a caller: there is no connection that could have one.
//
// The main type is Channel, which is both what services are registered with and a client connection.
//
// Invariants:
//  1. A message is encoded and decoded on its way: caller and service share no memory.
//  2. One message of a stream is on its way at once, in each direction: a side that does not read stops the side that sends,
//     and so does a caller that waits for the memory of what it is sent.
//  3. When a call ends, at either end, its context ends at the other.
//  4. A panic of a service ends the process, whatever its caller catches.
//
// A Channel may be used by several goroutines once everything is registered; streams as those of gRPC.
package inproc
