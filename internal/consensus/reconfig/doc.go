// Package reconfig decides which configuration may follow which, and makes the change that leads there.
//
// Next takes the configuration in force, a request and the facts that only the leader knows, and returns the change to
// log, or the reason to refuse it. It looks at nothing else and changes nothing, so that the rules can be read, and
// tested, apart from the protocol that obeys them. That one change is in flight at a time, and only after an entry of
// the leader's term has committed, is package raft's to ensure.
//
// Laws of every change under ProtocolSingle (Raft thesis, section 4.1):
//  1. The voters before and after differ by one member at most, so that their majorities meet.
//  2. It never leaves a cluster without a voter, and, if asked to be strict, never without a reachable majority.
//  3. An id once removed is never in a configuration again.
//
// All functions are pure and may be called concurrently.
package reconfig
