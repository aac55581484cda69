package raft

import "github.com/quorate/quorate/internal/consensus"

// For spans and the log of slow requests a replica notes which member had the last word: the one whose message, or whose disk,
// made a quorum complete. Nothing in the protocol depends on it. The times that belong to it come from the shell, and with
// messages.

// Commit is what a Step committed: entries up to an index; none if Upto is zero.
type Commit struct {
	Upto consensus.Index
	// Waited says for which member the last of them waited, as far as it is known. AllTook is what the leader says; a leader
	// does not set it.
	Waited consensus.Waited
}

// lastWord is the member that let a quorum reach a value, the last time that one reached a higher one.
type lastWord struct {
	upto   uint64
	waited consensus.Waited
}

// note notes that a member has let a quorum reach a value. diskTook is what it says of its disk.
func (w *lastWord) note(reached uint64, from consensus.MemberID, diskTook uint32) {
	if reached > w.upto {
		w.upto, w.waited = reached, consensus.Waited{WaitedFor: from, DiskTook: diskTook}
	}
}

// of returns for which member a value waited; no member if it is higher than any that is noted.
func (w *lastWord) of(reached uint64) consensus.Waited {
	if reached > w.upto {
		return consensus.Waited{}
	}
	return w.waited
}
