// Package guard is where a simulated process judges who speaks to it, as package transport does for a real one: the same
// identity.Guard, identity.Admit and identity.StillSpeaks, with streams that are no more than a claim which was welcomed.
//
// A Guard belongs to one life of a process. It does no I/O: the host writes what the guard has seen, and tells whether
// another life can still be heard.
//
// Invariants:
//  1. Nothing reaches a core under a claim that the guard of the receiver did not accept under the configuration in force.
//  2. What must be remembered of a life is on disk before anything that comes under it is believed.
//
// Not safe for use by several goroutines.
package guard
