// Package clients serves, in a member, native clients (package client), which choose the ids of their proposals.
//
// A client proposes through any member, under ids of its own session, so that a retry is applied once. It may also
// offer a proposal to the leader and to all other voters at once, over its streams to them, and count their verdicts:
// it is a proposer of the fast path like a member. The package passes the clients' offers to the core and the core's
// answers to the clients' streams, opens their sessions, and retires the sessions of silent clients. Streams are
// package clients/streams, the table of proposals is package proposals.
//
// The main type is Clients; a member has one. The interface Member is what the package needs of its member.
//
// Invariants:
//  1. A session of a client ends only by a log entry, the same on every member.
//  2. Only a leader that has confirmed its term retires the sessions of silent clients.
//  3. The bytes that clients have offered and the core has not taken are bounded; offers beyond the bound wait.
//
// All methods may be called concurrently.
package clients
