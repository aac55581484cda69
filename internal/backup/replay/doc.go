// Package replay restores a backup into a scratch directory, and proves it: a base is downloaded and opened with the identity
// of the cluster that wrote it, the segments' entries go through the state machine that members run, and after each entry the
// chain must have the sum that it had there.
//
// It makes no data directory of a member: package server does, from the State. It is the same road for a restore and for a
// verification, which drops the State.
//
// The main function is Run.
//
// Invariants:
//  1. A State is the one that the cluster had after State.At, or there is none.
//  2. An object that is missing, damaged or of another history is named, and another plan for the same target is tried. A
//     state before the one that was asked for is never taken for it.
//  3. Memory: the store's caches, and segments of about 64 MiB, or one.
//  4. The base is downloaded once more for segments whose entries are not the cluster's, however many there are, if the disk
//     has room for copies of the store: type copies.
//
// See docs/adr/0086-continuous-backup.md.
package replay
