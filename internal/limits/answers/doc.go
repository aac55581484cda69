// Package answers bounds the memory of answers to clients. A Budget is the memory that all answers of a member may take
// together, an Account the part that one of them has taken.
//
// An Account grows while its answer is collected: by twice the collected bytes, since the answer is encoded beside them, or
// once if it is encoded at once (Account.Encoded). It never waits for more, since two answers could then wait for each other:
// if the budget is used up, the answer is dropped, and collected again when as much is free (Build). While the encoded answer
// is being sent (Sending), the account gives back all bytes but the encoding's, and the client has to read it: an answer of
// which the client reads nothing for too long is given up with its connection.
//
// The package does not collect answers and does not know their contents.
//
// Invariants:
//  1. A host's answers together have at most as much as is free for the others, except one answer at a time.
//  2. The waiters of one host are served in the order of arrival, and hosts in turn.
//  3. An account gives back its bytes when it is released, is garbage, or its connection has ended.
//
// A Budget may be used by several goroutines at once, an Account by one.
package answers
