// Package proposals keeps the commands that a member has proposed until their outcome is known.
//
// A proposal is repeated under one id until its entry is applied, it is refused for good, or its caller gives it up;
// the state machine applies an id once (package kv/apply). The package does no I/O and knows no clock: a tick is an
// argument. It is not the protocol (package raft carries proposals), and it does not wait: a Completion is called.
//
// The main type is Table. It holds the member's own proposals, whose ids are in sessions of the member, and those of
// native clients, which bear the ids that the clients gave them. Both kinds have the same methods. A Route says which
// way an answer came: through the leader, inferred, or fast.
//
// Invariants:
//  1. A Completion is called once, with the outcome. Results of applied entries come in the order of the log. A decision of
//     the fast path comes before its entry is applied (Decided), and a refusal when it arrives.
//  2. An id is given once. A proposal gets another id only after the log says that the first will never be applied.
//  3. A session is retired only when all its proposals are resolved.
//  4. The open proposals are bounded, in number and in bytes, apart for members and for clients.
//
// A Table may be used concurrently. Completions are called with its lock held: they must not call back.
package proposals
