// Package prover proves the continuous backup while this member is the one that the leader has appointed for that (package
// member/shipping): it takes the steps of package backup/survey, which proves in a scratch directory, and reports what package
// backup/attempt makes of that.
//
// A Prover has one goroutine. It is the last in the queue for everything: it reads the place at a bounded rate, one object at a
// time, and rests as long as it works. Nothing here decides when a proof is due, what one is, or how a try ended.
//
// Invariants:
//  1. Nothing is taken from this member's own store: what is proven is the place.
//  2. A place that hangs holds neither a proof that is over nor the end of the member: reads are given up then, and counted.
//     None of them has anything of the member but its buffer.
//  3. A proof ends when its appointment does. The next start removes the scratch directory of a process that was killed.
package prover
