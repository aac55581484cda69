// Package survey asks members how they are and puts the answers side by side.
//
// It draws no conclusions about the cluster's health; it only compares what the members say: which one leads, and how far each
// is behind the furthest log. The main type is Member, one member's answer or silence.
//
// Invariants:
//  1. Every member that was asked about is in the result, in the order of the question, answered or not.
//
// Functions may be called by any number of goroutines.
package survey
