// Package tally counts the answers to proposals of the fast path (CURP, NSDI 2019, section 3.2.1), for the member or the
// client that proposed them, and says when a proposal is decided. It sends nothing: package raft and native clients do.
//
// The main type is Tally: all proposals of one proposer that are under way in one term and one configuration. A Tally
// belongs to one goroutine.
//
// Invariants:
//  1. A proposal is decided once the leader has answered it and a superquorum of the voters holds it, the leader among
//     them, all the same attempt: at one revision, and one payload.
//  2. A voter counts once for a proposal.
//  3. Answers of different terms or configurations are never added up: the user of a Tally resets it when either changes.
package tally
