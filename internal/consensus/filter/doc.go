// Package filter judges messages before a replica looks at them: by their shape, which needs no state, and by their sender and
// term, for which a few facts of the receiver are enough.
//
// The main type is Receiver: those facts. A message that passes may still be wrong or hostile, if it bears the name of a
// member; it can then cost an election, but reach no invariant, no overflow and no unbounded table. Whether the sender is who
// it says is not decided here: the transport does. Judging changes nothing; all functions may be called concurrently.
//
// Invariants:
//  1. No message of a sound member is dropped, except those of an earlier term.
//  2. A message that passes has no gap in its entries, and no number from which a sum could overflow.
//  3. A sender that the receiver's log does not know passes only with the kinds of message that a new member must send.
package filter
