// Package peercall is remote procedure calls between members, mostly to the leader: one table of methods with typed
// questions and answers, and one table of the errors that are encoded so that the caller can recognize them.
//
// A Method names a request and says how question and answer are encoded. A Table has the methods that a member
// answers; Serve adds one. A Caller asks others: Ask asks one peer, AtLeader the leader, and again while leadership
// moves. Faults are the table of errors. The methods themselves are in package member; connections are those of
// package transport.
//
// Invariants:
//  1. An error is either final, or AtLeader asks again; the table of errors says which.
//  2. A leader answers a fenced method only if it has the configuration that is applied at the member that asks.
//     Otherwise it was deposed, or is not ready.
//  3. A question may arrive twice: handlers must be idempotent.
//
// A Table is filled before it is used; then all may be called concurrently.
package peercall
