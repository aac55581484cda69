// Package epoch finds out whether the cluster was recovered without this member, and says what the member may do then.
//
// A recovery from quorum loss begins the next epoch of a cluster. Members of the epoch before it may still run. Package
// identity decides what a member may do once it knows of them (identity.Succession). A Watch adds the time to that:
// when the member had a quorum last, and when its peers are asked again. The simulator drives a Watch. A Monitor is a
// Watch with a lock and with the goroutine that asks; a member has one.
//
// It does not recover anything: see package recovery.
//
// Invariants:
//  1. A member without a quorum does not campaign before it has asked its peers once.
//  2. A member counts as having a quorum until five election timeouts after it knew a leader last: an election is no
//     loss of a quorum.
//
// A Watch belongs to one goroutine at a time. All methods of a Monitor may be called concurrently.
package epoch
