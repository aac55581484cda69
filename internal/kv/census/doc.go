// Package census knows how many keys lie in each of many intervals of the key space, now and at earlier revisions.
//
// A Census divides the key space into intervals of a few thousand keys. Each has the number of its keys and a log of the
// changes of that number, so that the count of a range is a sum over the intervals within it, and the caller's counts of the
// one or two at its ends. It begins without counts: a Survey walks, in bounded steps, over intervals that are unknown or have
// grown too large, and divides them. The package reads no store; its caller does, and passes on the keys.
//
// It is a cache. Members differ in it, and none of it is stored.
//
// Invariants:
//
//  1. A count is exact, for every revision that Count is asked for. Spans that it does not know it leaves to its caller.
//  2. An interval's log has every change after the interval's floor, up to the last one applied.
//  3. A Survey begins after a known change, and gets every later one in its span, or it is void.
//  4. Intervals and logs together take no more than a fixed number of bytes. Beyond that old revisions are forgotten, and
//     intervals are joined.
//
// A Census may be used from any number of goroutines, but for Apply and Begin, which have one caller each.
package census
