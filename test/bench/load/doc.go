// Package load is what closed-loop clients ask of a cluster: workers, each with a connection of its own, the operations that
// they repeat, the window in which these count, and probes that begin on time whatever became of the earlier ones.
//
// Invariants:
//  1. Only what ends inside the measured window counts; what fails is counted, never dropped.
//  2. Two clusters are asked the same: keys and values are drawn from generators with fixed seeds.
//
// A Worker belongs to one goroutine at a time.
package load
