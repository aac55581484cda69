// Package groupcommit decides when a leader writes what was proposed to it (group commit): at once, or together with what comes
// within the next moment.
//
// A batch costs every member a message, a sync, and some goroutines that wake, however little is in it. Where proposals
// come one by one, but often, waiting for more saves most of that. The one type is Gate.
//
// The package is pure: no clock, no goroutine, no lock. Time is an argument, so that the simulator can run it. Safety does not
// depend on it: a proposal that waits is a message that is late.
//
// Invariants:
//  1. Nothing waits longer than the window after the batch before it.
//  2. No proposal waits once as many wait as are usually open at once, or a full batch.
//
// Nothing here may be used concurrently.
package groupcommit
