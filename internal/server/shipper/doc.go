// Package shipper performs the operations on which package backup/turns decides: it opens the place, ships to it and reports
// while this member is the one that the leader has appointed (package member/shipping).
//
// A Shipper has one goroutine, which gives the machine the row, the time and how operations ended. Operations have
// goroutines of their own, of which packages turns and ship bound the number. Nothing here decides.
//
// Invariants:
//  1. Run returns once all operations have ended, or were given up since the place hangs. Those touch the place alone, and
//     free what they hold when they end.
//  2. Memory is bounded: what waits for the place by Options.HeldBytes, what is known of it by Options.NameBytes.
package shipper
