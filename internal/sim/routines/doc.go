// Package routines runs, in a simulated world, code that blocks in a real member: for a read, for an answer, for a moment. Here
// that code runs unchanged as a routine, and goes on in the event that it waits for.
//
// A Set has the routines of a world, Set.Go begins one, and a Lock lets one at a time through. It knows nothing of members.
//
// Invariants:
//  1. At most one routine runs at a time, inside an event: the same seed gives the same events.
//  2. A routine that was ended waits no more: every Wait returns false, and it calls no callback.
//
// A Set belongs to one goroutine, that of its world.
package routines
