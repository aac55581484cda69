// Package epoch finds out whether the cluster was recovered without this member, and says what the member may do then.
//
// A recovery from quorum loss begins the next epoch of a cluster. Members of the epoch before it may still run. Package
// identity decides what a member may do once it knows of them (identity.Succession). A Tracker adds times to that: when
// the member last had a quorum, and when it asks its peers again. A Monitor adds a lock, and the goroutine that asks
// the peers. A member has a Monitor; a simulated member has a Tracker.
//
// It does not recover anything: see package recovery.
//
// Invariants:
//  1. A member without a quorum does not campaign before it has asked its peers once.
//  2. A member counts as having a quorum until five election timeouts after it last knew a leader, so that an election does
//     not count as the loss of a quorum.
//  3. A member that knows a leader is not mute, from before it asks that leader anything: it would drop the answer.
//
// A Tracker belongs to one goroutine at a time. All methods of a Monitor may be called concurrently.
package epoch
