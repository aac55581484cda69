// Package fast is the fast path of one member: CURP in front of Raft (Park and Ousterhout, NSDI 2019), with revisions that
// are fixed before the entry has committed. A proposer sends a proposal to the leader and, at the same time, to every other
// voter:
//
//	proposer --- MsgFastPropose --> leader   appends it at the next revision, syncs, evaluates: MsgFast
//	         --- MsgRecord -------> voters   record it at the revision that they think is next, sync: MsgRecorded
//
// Once the leader and a superquorum give the same revision, the outcome is fixed: any later leader finds the entry in its
// log or learns from the votes of a quorum that enough of them have the record. Otherwise the entry commits as any other.
//
// The main type is Path: the duties of a member as a voter (voter.go), as the leader (leader.go), as the proposer (proposer.go)
// and as a new leader (recover.go), and the dropping of records (forget.go). The rules by which a voter and the leader refuse a
// proposal are in refusal.go. A Path appends to no log and sends nothing: package raft does. It reads the replica's log and
// configurations, and gets the rest as a View. A Path belongs to one goroutine.
//
// Laws; why each is needed: docs/fast-path.md.
//  1. Everything counts by attempt, a proposal at a revision.
//  2. The records of one voter conflict neither with each other nor with entries that are logged and not applied.
//  3. An attempt that this member acknowledged, as a voter or as the leader, goes with its votes until it is applied.
//  4. Answers count in one term and under one configuration, which is settled.
package fast
