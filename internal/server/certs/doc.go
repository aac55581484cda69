// Package certs turns files of certificates into TLS for the two kinds of connections a member has: those of its
// clients, and those with its peers.
//
// It decides nothing about who may do what: it says who is let in, by which authority. The main type is the Keeper,
// which holds the files of one kind and makes listeners and client configurations from them.
//
// Invariants:
//  1. A file that has changed counts from the next handshake on, without a restart; connections that exist live on.
//  2. A change that cannot be read (a certificate without its new key, a half-written file) is logged once, and what
//     was read before goes on serving.
//  3. Sessions are never resumed: every connection is checked against the authorities of that moment.
//  4. No connection waits for another's handshake: it happens where a connection is first used, not in Accept.
//
// All methods may be called concurrently.
package certs
