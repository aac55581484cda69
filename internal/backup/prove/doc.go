// Package prove proves a continuous backup from what its place has, and from nothing else: it restores the newest state, and
// compares each base with the state to which the log leads from the base before it.
//
// A restore alone (package replay) proves that entries have the effects that they had in the cluster. It says little of keys in
// a base that no later entry touches. So a base counts as proven when a replay from an earlier one has all of its contents
// (apply.Machine.Contents): what is believed is only the oldest base from which a proof begins.
//
// The main function is Run.
//
// Invariants:
//  1. A Proof says Proven of the newest state only if a restore had it, with the chain's sum after each entry.
//  2. An object that is missing, damaged or differs is in Damaged, also if others replace it.
//  3. At most two stores are there at a time, each as large as a base and the log after it, below Options.Dir, which is
//     removed at the end.
//
// See docs/adr/0091-who-proves-a-backup.md.
package prove
