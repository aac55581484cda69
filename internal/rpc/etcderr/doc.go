// Package etcderr maps our errors to those of etcd's API, in code and text.
//
// It holds the only tables. It decides nothing, and knows no service: those errors that only one service gives are with that
// service, and those of the native API in internal/rpc/membershipapi.
//
// The main function is Wire. An error that no row knows goes out with code Unknown and its own text.
//
// Invariants:
//  1. Each row of wireErrors gives an error whose text etcd's clients know.
//  2. Each reason for which a leader refuses a membership change has a row.
//  3. An error that is a gRPC status stays as it is; no error stays none.
//
// The functions may be called concurrently.
package etcderr
