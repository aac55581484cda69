// Package expiry ends the leases of clients on the leader, and renews them.
//
// Package kv/lease keeps the leases and their deadlines; deadlines exist at the leader only. A Revoker tells package
// lease when its member leads, and then proposes to revoke expired leases. A lease ends only by that log entry, the
// same on every member. Batches put renewals together, at the leader and at members that ask it.
//
// Invariants:
//  1. A new leader begins every deadline anew, and adds one election timeout. Leases may live longer, never shorter.
//  2. A revocation names the term in which the deadlines began. One of an earlier term has no effect.
//  3. A renewal needs no log entry: a quorum confirms that this member leads, and only the leader expires leases.
//     The question begins after the last renewal of its batch came.
//  4. A member that is marked corrupt revokes nothing: its leases may be wrong.
//  5. No lease ends because renewals could not be served. Leases end only after a read that a renewal needs, too, was
//     answered. While none is, for the most part because the store hangs, the clock of leases stands still.
//
// Lead and Continue belong to the goroutine that applies, so that the loop never waits for a store that is being
// replaced. Everything else may be called concurrently. The scanner, which finds expired leases and revokes them, is a
// state machine over the member's clock and its asynchronous requests: the simulator runs it, too.
package expiry
