// Package shipper ships the continuous backup while this member is the one that the leader has appointed (package
// member/shipping): it gives package backup/ship the entries that were applied, performs its operations, and reports.
//
// A Feed takes what the member applies, and never holds it up. A Shipper has a goroutine that looks whose turn it is, and while
// it is this member's one more for the turn; operations have goroutines of their own, of which package ship bounds the number.
// Nothing here decides what is shipped.
//
// Invariants:
//  1. A member whose turn is over performs nothing more: its report is refused, or it sees the row, whichever comes first.
//     The objects that it puts until then are at worst a branch that a restore does not take.
//  2. Memory is bounded: a Feed's by NewFeed, what waits for the place by Options.HeldBytes.
package shipper
