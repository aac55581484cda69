// Package frozen compares encoded values with a table of bytes in the tree, so that no form on disk or on the wire changes by
// mistake.
//
// A table is a text file: the name of a value on a line, and below it, indented, its bytes: in hexadecimal, or quoted where
// they are text. A name stands for one value for ever. The package knows no form itself: tests pass the values that today's
// code encodes.
//
// Invariants:
//  1. A value whose bytes differ from the table, and one that is in the table and not passed, fail the test.
//  2. Rewriting appends values that the table lacks. It changes and removes none: for that a person deletes the lines.
//
// It is used by tests only, and by one goroutine for each table.
package frozen
