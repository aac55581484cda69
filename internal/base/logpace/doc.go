// Package logpace keeps floods out of the log: of lines that clients can cause, one a second is logged, with the number of
// those that were not.
//
// It decides nothing about levels and texts. The main type is Pace; Writer applies one to the lines of a library.
//
// Invariants:
//  1. The first line after a second of silence is logged at once.
//  2. In the long run one line a second is logged at most.
//
// All methods may be called concurrently.
package logpace
