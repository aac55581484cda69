package raft

import "github.com/quorate/quorate/internal/consensus"

// hardState is the durable state of a member beside its log (Raft paper, figure 2), and how much of it is on disk. A saved
// field is part of a persist request, which may be under way.
type hardState struct {
	term, savedTerm consensus.Term
	vote, savedVote consensus.MemberID
	// promise is the time for which this member promises a leader to elect no other, in microseconds: rounds.go.
	promise, savedPromise uint64
	savedCommit           consensus.Index

	seq, doneSeq uint64 // the last persist request, and the last durable one
	termSeq      uint64 // the request that carries the current term
	promiseSeq   uint64 // the request that carries the promise
}

// restore takes the state from the disk. A snapshot may be of a later term than the saved one: then the saved vote is void.
func (h *hardState) restore(saved *consensus.HardState, snapshot consensus.Term, commit consensus.Index) {
	h.term = max(saved.Term, snapshot)
	if h.term == saved.Term {
		h.vote = saved.Vote
	}
	h.savedTerm, h.savedVote, h.savedPromise, h.savedCommit = h.term, h.vote, saved.Promise, commit
}

// enter begins a term, in which this member has not voted.
func (h *hardState) enter(term consensus.Term) { h.term, h.vote = term, consensus.NoMember }

// promiseFor sets the promise to leaders from now on, in microseconds.
func (h *hardState) promiseFor(micros uint64) { h.promise = micros }

// voteFor gives the vote of the term.
func (h *hardState) voteFor(id consensus.MemberID) { h.vote = id }

// request numbers the next persist request.
func (h *hardState) request() uint64 {
	h.seq++
	return h.seq
}

// done notes that the requests up to seq are durable.
func (h *hardState) done(seq uint64) { h.doneSeq = max(h.doneSeq, seq) }

// changed reports whether a field has to be saved.
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

// pending reports whether the current term is not durable yet: no promise that is made in it may leave before.
func (h *hardState) pending() bool {
	return h.termRequest() > h.doneSeq
}

// termRequest is the persist request that carries the current term: an earlier one, or the next one.
func (h *hardState) termRequest() uint64 {
	if h.term != h.savedTerm {
		return h.seq + 1
	}
	return h.termSeq
}

// promised returns own if a promise of that length is durable, and zero otherwise.
func (h *hardState) promised(own uint64) uint64 {
	if own > 0 && h.savedPromise >= own && h.promiseSeq <= h.doneSeq {
		return own
	}
	return 0
}
