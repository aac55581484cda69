// Package tokenapi is the native service of join tokens: making, listing and deleting them. Package auth says what a token is,
// and what becomes of one that is shown; package member, at the leader, decides which process must show one.
//
// Invariants:
//  1. The secret of a token is in one answer, to the caller that made it. It is not in the replicated log, and in no log of a
//     member.
//  2. Only root makes, lists or deletes tokens while authentication is enabled: the gate asks, and the state machine again.
//  3. A list is as new as the changes that were acknowledged before the call.
//
// A Service may be used by several goroutines.
package tokenapi
