// Package clients is what a member does for native clients (package client), which name their proposals themselves.
//
// A client proposes through any member, under ids of its own session, so that a retry happens once. It may also offer a
// proposal to the leader and to all other voters at once, over the streams that it has to each, and count their verdicts: it
// is a proposer of the fast path like a member. The package takes what clients offer to the core, takes what the core says to
// them back to their streams, opens their sessions, and retires those of clients that nobody hears any more. It is neither the
// streams (package rpc) nor the table of proposals (package proposals).
//
// The main type is Clients; a member has one. What it needs of the member is the port Member.
//
// Invariants:
//  1. A session of a client ends only by a log entry, the same on every member.
//  2. Only a leader that has confirmed its term retires the sessions of silent clients.
//  3. What clients have offered and the core has not taken is bounded; who finds no room waits.
//
// All methods may be called concurrently.
package clients
