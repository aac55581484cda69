// Package monotime keeps a time in one atomic word without losing its monotonic reading.
//
// A time that is kept as Unix nanoseconds is compared by the wall clock. An operator or NTP may set that clock: then an event
// of this second seems to be hours old, or in the future. The main type is Atomic.
//
// Invariants:
//  1. The difference between a time from time.Now and one that an Atomic keeps is the time that has passed between them,
//     however the machine's clock is set. Times without a monotonic reading, as those of a simulated clock, differ by what
//     they show.
//
// An Atomic may be used by several goroutines at once.
package monotime
