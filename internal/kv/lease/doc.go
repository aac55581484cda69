// Package lease keeps the leases: which exist, which keys are attached to them, and, at the leader, when they end.
//
// A Lessor has two halves. The replicated half (Grant, Revoke, Attach, Detach) is changed by applied log entries alone, is the
// same on every member, and is written through a Table into the same engine batch as the data it belongs to. The volatile half
// (Promote, Demote, Renew, Expired) lives at the leader: deadlines, which a keep-alive moves without a log entry. The Lessor
// has no clock: its callers pass the time. It revokes no lease itself: it names the leases that are due, and the member
// proposes their end.
//
// Invariants:
//  1. A lease never ends early. Its deadline is counted from a reading of the leader's clock that was taken after the
//     grant was applied there (the first call with a time that follows it), or after the renewal was asked for, so no
//     client can have started its own countdown later. A new leader does not know the renewals of its predecessor,
//     so it restarts every lease in full, plus an extension: one election timeout.
//  2. A lease that has been named as due, or is past its deadline, cannot be renewed: its end may be in the log
//     already.
//  3. The replicated half depends on the log alone; the volatile half is never written.
//  4. A key is attached to at most one lease, the one in its newest version.
//  5. The keys of leases are rows of the table, and in memory only as far as the batch under way has changed them. A Lessor
//     has the number of keys of each lease.
//  6. The lock, which the state machine needs for every put with a lease, is held for at most leasesPerHold leases at once,
//     however many there are. Longer work releases it in between.
//
// All methods are safe for concurrent use; the replicated half has one writer, the state machine.
package lease
