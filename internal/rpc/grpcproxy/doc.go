// Package grpcproxy forwards the calls of clients to the members of a cluster, as etcd's grpc-proxy does: clients know one
// address, and share the proxy's few connections to the members.
//
// It is not a cache, and joins no watches (ADR 0031): each call is one call of a member, its messages are passed on as they
// are, and users and permissions are checked there. It answers itself only for the list of members, and about its own health.
// With a namespace it reads messages with keys, to put a prefix before them and to take it off.
//
//	client -- stream --> forwarder.handle --+-- one frame at a time --> member, each call the next that is connected
//	                     (UnknownServiceHandler, no message types)
//
// The main type is Proxy.
//
// Invariants:
//  1. A call ends at both sides: with the member's status, details and trailers, or when the client, or its deadline, ends it.
//  2. Of each call one message in each direction is held. The memory that clients hold is counted in bytes, for each client
//     host and for all, from the first byte that comes until the last one is sent: a client that does not read is not read
//     for.
//  3. With a namespace no message passes that could name a key outside of it.
//
// ServeClients and ServeMetrics may be called several times and concurrently; Close once.
package grpcproxy
