// Package feed keeps the entries that a member applied last, for the continuous backup: while a backup is on, each member
// does, so that one that is appointed (package turns) goes on where the one before it ended.
//
// The main type is Feed. It has no goroutine and no clock; the goroutine that applies gives it batches, and one that ships
// takes them. The simulator runs it.
//
// Invariants:
//  1. The entries that are kept follow each other, up to the last one that was applied.
//  2. They have at most as many bytes as New was told. The oldest are forgotten first.
//  3. Nothing waits for a reader.
package feed
