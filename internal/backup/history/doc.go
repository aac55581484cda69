// Package history tells the histories of a cluster apart that a place may have: volumes that were rolled back, and recoveries,
// let a cluster go on from an earlier state, and what it shipped before stays. Names of objects prove which segment continues
// which only where one ends and the other begins; where they overlap, this package reads them.
//
// Invariants:
//  1. A plan of a Search that looks for OneHistory leads to a state of which the place has one only, as far as its objects can
//     be read: else the error names the two.
//  2. A good object of another history is no damage.
//
// It reads places (package backup/fetch). See docs/adr/0087-one-history.md.
package history
