// Package tlsconn finds the TLS state of a connection under any wrappers, and tells gRPC and net/http: our listeners
// encrypt below both. It tells handlers of gRPC calls by which connection they came, too.
//
// It decides nothing about certificates: package server/certs admits connections, package rpc/access finds users, and package
// transport asks whether a certificate may speak for a member.
//
// Invariants:
//  1. The state that it tells is that of a handshake that has ended. If it failed, there is no state, but its error.
//
// All functions may be called concurrently.
package tlsconn
