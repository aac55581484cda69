// Package diary writes the trace of a simulated world: one line per event, and a hash over all of them, by which two runs of
// one seed can be compared even if no lines are written.
//
// A Diary belongs to the goroutine of its world.
package diary
