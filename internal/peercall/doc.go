// Package peercall is how members ask each other something, the leader above all: one table of methods with typed questions and
// answers, and one table of the errors that keep their meaning on the way.
//
// A Method names a request and says how question and answer are encoded. A Table holds what a member answers; Serve fills it.
// Ask asks one peer, AtLeader the leader, wherever it is, again and again while leadership moves. It knows no request: package
// member lists them. It opens no connection: package transport does.
//
// Invariants:
//  1. An error is final, or it says to ask again; which one is written beside it in the table of errors.
//  2. A leader answers a fenced method only if it has the configuration that is applied at the member that asks: else it was
//     deposed, or is not ready.
//  3. Whoever answers must bear being asked twice.
//
// A Table is filled before it is used; then all may be called concurrently.
package peercall
