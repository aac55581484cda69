// Package goals is the table of what this project wants to reach beside etcd, row by row, and prints where it stands. It
// measures nothing: it gets the rows of a report.
//
// Invariants:
//  1. A row without figures of both servers is printed as not measured, never left out.
//  2. Ratios compare figures of one round only, and the least and the most of them stand beside the median.
package goals
