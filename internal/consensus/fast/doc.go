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
// The main type is Path: what a member does as a voter (voter.go), as the leader (leader.go), as the proposer
// (proposer.go), as a new leader (recover.go), and when a record is dropped (forget.go); by which rules a voter and the leader
// refuse a proposal is in refusal.go. It appends to no log and sends
// nothing: package raft does. It reads the replica's log and configurations, and gets the rest as a View. A Path belongs
// to one goroutine.
//
// Laws; why each is needed: docs/fast-path.md.
//  1. Everything counts by attempt, a proposal at a revision.
//  2. Records of one voter, and what is logged and not applied, do not conflict.
//  3. What this member acknowledged, as a voter or as the leader, goes with its votes until it is applied.
//  4. Answers count in one term and under one configuration, which is settled.
package fast
