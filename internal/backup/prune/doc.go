// Package prune removes from a place what the rule of a continuous backup does not keep (package keep): the manifests of bases,
// segments, notes, and files that no manifest names.
//
// It is a state machine without clock, goroutine and I/O. A round begins with Begin; outputs are operations (Take), inputs how
// they ended (Done). A round holds no state that the next one needs: one that was interrupted anywhere is begun anew by any
// member. The same machine with DryRun says what would go.
//
// The main type is Pruner.
//
// Invariants:
//  1. The order is files that nothing named before this round, a note of what goes (backup.Kept), manifests from the oldest on,
//     segments from the oldest on, notes. So a manifest that is there has its files, and a restore that misses an object
//     learns from the note that it was removed.
//  2. A file goes only if all manifests were read, none of them names it, it is FileGrace old by the place's clock, and the
//     last manifests went ManifestGrace ago: a member whose turn is over may still make a base.
//  3. The newest base must be in the list: a list that is late removes nothing.
//  4. An operation that fails ends the round.
//
// See docs/adr/0089-retention.md.
package prune
