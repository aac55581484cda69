package raft

import "github.com/quorate/quorate/internal/consensus"

// hardState is the durable state of a member beside its log (Raft paper, figure 2), and how much of it is on disk. What is
// saved is part of a persist request, which may be under way.
type hardState struct {
	term, savedTerm consensus.Term
	vote, savedVote consensus.MemberID
	// promise is what was, or will be, promised to leaders in microseconds: rounds.go.
	promise, savedPromise uint64
	savedCommit           consensus.Index

	seq, doneSeq uint64 // the last persist request, and the last one that is durable
	termSeq      uint64 // the request that carries the current term
	promiseSeq   uint64 // and the one that carries the promise
}

// changed reports whether anything is to be saved.
func (h *hardState) changed() bool {
	return h.term != h.savedTerm || h.vote != h.savedVote || h.promise != h.savedPromise
}

// save puts the state into the persist request that is being made. The commit index need not be saved: it is a hint.
func (h *hardState) save(commit consensus.Index) *consensus.HardState {
	if h.term != h.savedTerm {
		h.termSeq = h.seq
	}
	if h.promise != h.savedPromise {
		h.savedPromise, h.promiseSeq = h.promise, h.seq
	}
	h.savedTerm, h.savedVote, h.savedCommit = h.term, h.vote, commit
	return &consensus.HardState{Term: h.term, Vote: h.vote, Commit: commit, Promise: h.promise}
}

// pending reports whether the current term is not durable yet: nothing that speaks for it may leave before.
func (h *hardState) pending() bool {
	return h.term != h.savedTerm || h.termSeq > h.doneSeq
}

// promised returns own, if that much was promised durably, and zero before.
func (h *hardState) promised(own uint64) uint64 {
	if own > 0 && h.savedPromise >= own && h.promiseSeq <= h.doneSeq {
		return own
	}
	return 0
}

// softState is what a member knows of leadership and does not keep: who leads the current term, and what the member does.
type softState struct {
	role   Role
	leader consensus.MemberID // or NoMember
	// boundTo is the configuration that the leader last said is in force, if this member's log does not say so yet.
	boundTo consensus.ConfigID
	noop    consensus.Index // of a leader: the first entry of its term
	matched consensus.Index // of a follower: its log equals the leader's, in this term, up to here
}

// clock is the time, in ticks since the start.
type clock struct{ now uint64 }
