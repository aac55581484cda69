// Package http2 judges the transport of --grpc-transport=quorate (packages h2 and rpc/front) by what others have written for
// that: h2spec, which checks a server by RFC 9113 and RFC 7541, and gRPC's interoperability cases, those that need no
// account.
//
// It is a module of its own, so that the product requires neither.
package http2
