// Package tokenapi is the native service of join tokens: making, listing and deleting them. What a token is, and what becomes
// of one that is shown, is package auth's; who must show one is decided by the leader's package member.
//
// Invariants:
//  1. The secret of a token is in one answer, to who made it. It is not in the replicated log, and in no log of a member.
//  2. Only root makes, lists or deletes tokens while authentication is enabled: the gate asks, and the state machine again.
//  3. What is listed is as new as what was acknowledged before the call.
//
// A Service may be used by several goroutines.
package tokenapi
