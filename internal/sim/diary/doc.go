// Package diary writes down what happens in a simulated world: one line per event, and a hash over all of them, by which two
// runs of one seed can be compared although nobody reads the lines.
//
// A Diary belongs to the goroutine of its world.
package diary
