// Package dice draws from the random streams of a seed: times, shares, choices. All random decisions of a simulated world are
// drawn here, so that one seed gives one run.
//
// A stream belongs to one goroutine. Two streams of one seed are independent: a change in how one part of the world draws
// leaves the others alone.
package dice
