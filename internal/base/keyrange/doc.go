// Package keyrange holds half-open ranges of keys and sets of them.
//
// A Range is [Start, End) in byte order; an empty End means "to the end of the key space". A Set is a union of ranges,
// kept sorted and merged. Conflicts between commands, the ranges that a watcher listens to and the ranges that a role
// may touch are all questions to these two types. The package knows nothing of revisions, leases or users.
//
// Invariants of a Set:
//  1. Its ranges are sorted by Start, none is empty, and no two of them overlap or touch.
//  2. It never changes a slice that was handed to it, but it keeps them: do not modify keys afterwards.
//
// Neither type locks; a Set that no goroutine adds to may be read from many goroutines.
package keyrange
