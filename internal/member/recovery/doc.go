// Package recovery recovers a cluster that has lost its quorum for ever: `quorate recover`.
//
// It works on the data directories of stopped members. Inspect reads one as a Survivor. Its Plan says what would be
// written to make it the only voter, and Write writes that to its log. It is no part of the protocol and of no running
// member: what the lost members acknowledged among themselves is lost.
//
// Invariants:
//  1. Every entry in the survivor's log is kept, also those that had not committed, and every record that the fast path
//     may have decided (adopt.go), unless it conflicts with one that is kept.
//  2. All other voters are removed for ever, by tombstones, and the cluster is in its next epoch. Only learners that
//     the operator names, and whose logs are part of the survivor's, stay.
//  3. The survivor's log is written by one append: a crash leaves the old state or the new one.
//  4. A voter that answers is never taken for lost (voters.go).
//
// Nothing here may be called concurrently. The caller holds the locks of the directories. See
// docs/adr/0012-recovery-keeps-the-tail.md and docs/adr/0020-who-may-vote.md.
package recovery
