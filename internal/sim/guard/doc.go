// Package guard is where a simulated process judges the claims of other processes, as package transport does for a real one:
// with the same identity.Guard, identity.Admit and identity.StillSpeaks, and with streams that are no more than an accepted
// claim.
//
// A Guard belongs to one life of a process. It does no I/O: the host writes what the guard has seen, and reports when another
// life was last in contact.
//
// Invariants:
//  1. No message reaches a core under a claim that the receiver's guard did not accept under the configuration in force.
//  2. A life that must be remembered is on disk before any of its messages is believed.
//
// Not safe for use by several goroutines.
package guard
