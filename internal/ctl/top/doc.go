// Package top is the command `quorate top`: it asks all members which prefixes of keys and which clients they work for most,
// and shows the sums, again and again on a terminal.
//
// The main type is view, one command line. Each member has counted in a sketch of package heavy, over a time of its own; the
// command makes rates of the counts and adds the sketches, with their errors.
//
// Invariants:
//  1. Answers of members are bounded before they are added, and what they name is quoted before it is printed.
//  2. One member that hangs holds the others up for --timeout at most, and its lack is shown.
//
// A command belongs to one goroutine.
package top
