// Package undelete is the command `quorate undelete`: it shows which keys of a prefix are gone and can be restored, asks, and
// restores them.
//
// Package internal/undelete decides what is restored; this package has the flags, the words and the tables.
//
// Invariants:
//  1. Nothing is written before the plan was shown, or --yes was given.
//  2. The status is 0 only if nothing that was asked for is missing: 1 says that there was nothing to restore, or that keys
//     could not be.
package undelete
