// Package gateway serves etcd's services as JSON over HTTP/1.1 and websockets, below /v3/, as etcd's gateway does: the same
// paths, the same mapping (names as in the .proto files, 64-bit integers as strings, bytes in base64) and the same errors.
//
// It translates and decides nothing. A request becomes a call on a connection within the process (package inproc), under the
// address of the HTTP client and with the token that it sends. It has no certificate: neither the gateway's, for there is none,
// nor the client's, which etcd does not use here either.
//
// The main type is Gateway. Its handlers are those that are generated from etcd's API; OpenAPI describes them.
//
// Invariants:
//  1. No header of a request gives a call anything that a gRPC client could not send itself.
//  2. A request has at most so many bytes, so many JSON objects and so much time as a gRPC message of that size has, and the
//     requests of one client host at most so many together.
//  3. A client that does not read stops its own stream, and no other's.
//
// A Gateway may be used by several goroutines.
package gateway
