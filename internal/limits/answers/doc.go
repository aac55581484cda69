// Package answers bounds the memory of answers to clients. A Budget is what all answers of a member may take together, an
// Account what one of them has taken.
//
// An Account grows while its answer is collected: by twice what is collected, since that is encoded beside it, or by what is
// encoded at once (Account.Encoded). It never waits for more, since two answers could then wait for each other: if the budget
// is used up, the answer is dropped, and collected again when as much is free (Build). When it was encoded and is on its way
// (Sending), what the encoding does not take is given back, and it has to be read: an answer of which its client takes nothing
// for too long is given up with its connection.
//
// The package does not collect answers and does not know what is in them.
//
// Invariants:
//  1. All of a client host is at most as much as is free for the others, except one answer at a time.
//  2. Those of one host that wait are served in the order of arrival, and hosts in turn.
//  3. An account gives back what it has when it is released, is garbage, or its connection has ended.
//
// A Budget may be used by several goroutines at once, an Account by one.
package answers
