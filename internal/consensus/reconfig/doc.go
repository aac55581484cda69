// Package reconfig decides which configuration may follow which, and makes the changes that lead there: one engine for
// five protocols.
//
// Next takes the configuration in force, a request and the facts that only the leader knows, and returns the change to
// log, or the reason to refuse it. Leave and Abort return the second entry of a joint change, forwards and back. They
// look at nothing else and change nothing, so that the rules can be read, and tested, apart from the replica that obeys
// them. When a change is in force, and that one is in flight at a time, is package raft's to ensure.
//
//	protocol      entries                      in force                 settled, so that retired members may stop
//	single        C(new), one voter differs    at append                committed
//	joint         C(old,new), then C(new)      each at append           C(new) committed; reported then
//	joint-early   the same                     each at append           the same; reported when C(old,new) is committed
//	activate      C(old,new)                   joint at append, C(new)  an entry appended after the activation committed
//	                                           when known committed
//	apply         C(new), or C(old,new) and    when applied             an entry appended after that committed
//	              then C(new)
//
// Sources: Raft thesis, sections 4.1 and 4.3; Shraer et al., "Dynamic Reconfiguration of Primary/Backup Clusters"
// (2012), for activate; etcd-raft's ConfChangeV2 for apply.
//
// Invariants:
//  1. Outside a joint change the voters before and after differ by one member at most, so that their majorities meet.
//  2. A change never leaves a cluster without a voter, and, if asked to be strict, never without a reachable majority.
//  3. An id once removed is never in a configuration again.
//  4. A joint configuration holds every member of both sides; Leave drops members that are in neither set.
//  5. A member is bound to one storage id, once and for ever, and where any is bound, no other becomes a voter.
//
// All functions are pure and may be called concurrently.
package reconfig
