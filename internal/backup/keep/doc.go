// Package keep decides what of a continuous backup is kept: a Rule in words of operators, and which bases and how much of
// the log stay by it.
//
// It is pure: no clock, no I/O. Package prune removes what is not kept.
//
// Invariants:
//  1. A state within the window of a rule that could be restored before can be restored after.
//  2. The newest base that is whole stays, and the one before it, with the log between, whatever rule and times say.
//  3. A base that is not known to be whole replaces no other.
//
// See docs/adr/0089-retention.md.
package keep
