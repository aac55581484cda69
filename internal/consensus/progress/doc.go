// Package progress is a leader's view of one other member: what it has for certain, what was sent to it, and how
// much may be sent next. It decides pace, never safety: a wrong guess costs a round trip; Match alone counts.
//
//	     probe accepted                    gap, connection lost
//	Probe ------------------> Replicate --------------------> Probe
//	  |  one append at a time      many, Next runs ahead        ^
//	  |  log no longer there                                    |
//	  +---------------------> Snapshot -------------------------+
//	                          no entries        installed, failed
//
// Invariants:
//  1. Match < Next.
//  2. Match never falls while the leader's term lasts: it is durable on the follower.
//  3. In Probe no entry leaves that left before, in Replicate no more than the window holds, in Snapshot none.
//  4. An entry is sent again only when the follower has said that it lacks it, in answer to an append that was sent after it.
//     Appends travel in order. Heartbeats may overtake them, so that no loss follows from their answers.
//
// A Peer belongs to one replica and is not safe for concurrent use. Raft paper, section 5.3; thesis, section 10.2.1.
package progress
