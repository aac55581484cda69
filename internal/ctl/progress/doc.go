// Package progress draws how far a membership job is, from what the cluster says of it.
//
// A Tracker is shown every state of a job and of its cluster, with the time at which it was seen; it answers with a block
// of lines for a terminal that can draw in place, or with one line for each phase that has begun. It does no I/O and has
// no clock: the same observations give the same lines.
//
// Invariants:
//  1. Durations are differences within one clock, the cluster's or this machine's. Only for a job that ran before it was first
//     seen are the two clocks compared, until the next state comes.
//
// A Tracker belongs to one goroutine. Size and Duration write quantities for people, everywhere in the command line.
package progress
