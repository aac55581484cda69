// Package answers bounds the memory of answers to clients. A Budget is what all answers of a member may take together, an
// Account what one of them has taken.
//
// An Account grows while its answer is collected. It never waits for more, since two answers could then wait for each
// other: if the budget is used up, the answer is dropped, and collected again when as much is free (Build). The package does
// not collect answers and does not know what is in them.
//
// A Budget may be used by several goroutines at once, an Account by one.
package answers
