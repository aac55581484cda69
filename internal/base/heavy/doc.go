// Package heavy finds the heaviest items of a stream in memory that does not grow with it: the Space-Saving sketch of
// Metwally, Agrawal and El Abbadi (2005), with weights, for items that each have several.
//
// The main type is Sketch. It has a fixed number of counters. An item that has one is counted in it; any other item takes the
// counter that is least, and inherits its count, since it may have been counted there before. So of a stream whose items weigh
// n together, a sketch of m counters has every item that weighs more than n/m.
//
// Invariants, for the weight by which a sketch ranks, w being what an item really weighs:
//  1. Tally <= w <= Most for an item that has a counter, and w <= Floor for one that has none.
//  2. Most-Tally and Floor are at most n/m, and the sum of the floors of what was folded in beside it.
//  3. The other weights of an item are what came since it has its counter: at most what they really are.
//  4. Neither memory nor the time of an addition depends on how many items there are, or how they are named.
//
// The package knows neither clocks nor chance. A Sketch belongs to one goroutine at a time.
package heavy
