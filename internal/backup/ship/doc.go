// Package ship decides what a member that ships a backup does: which entries it seals into a segment and when, which objects
// it puts in which order, when it makes a base, and what it gives up when the place takes nothing for long.
//
// It is a state machine. Inputs are applied entries with the chain's sums (Applied), the time (Tick), and how operations
// ended (Done); outputs are operations (Take) and the progress. It has no clock, no goroutine and no I/O: the caller performs
// the operations, in any number of goroutines, and the member waits for none of them.
//
// The main type is Shipper.
//
// Invariants:
//  1. A point that Progress calls restorable can be restored from what was put before, whatever comes after.
//  2. At most HeldBytes wait for the place. Beyond, entries are left out, and the place gets a note of it
//     (backup.Gap) and a new base, in this order: no gap is silent.
//  3. A segment continues the one before it, or follows a gap. Times never fall.
//  4. No more than AtOnce operations are under way at the place, and one of these is for segments and notes of gaps alone: they
//     wait neither for files of a base nor for retention. Among the others, a base and retention take turns.
//
// See docs/adr/0086-continuous-backup.md.
package ship
