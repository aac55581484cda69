// Package perform does for a member what package ship decides: it makes batches of applied entries, with the chain's sums, and
// performs operations on the place and on checkpoints.
//
// Nothing here decides, and nothing waits but for the operation itself. A Performer may do several operations at once.
package perform
