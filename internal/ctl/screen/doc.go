// Package screen draws a block of lines on a terminal anew in place, below lines that stay.
//
// Invariants:
//  1. A drawn line never wraps: it is cut at the width of the terminal, since a wrapped line would break the next drawing.
//
// A Screen belongs to one goroutine, and no other goroutine writes to its output.
package screen
