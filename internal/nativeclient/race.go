package nativeclient

import (
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// race is one proposal that was offered to all voters at once.
type race struct {
	view  View
	id    consensus.ProposalID
	tally tally.Tally
	asked []uint64 // voters, beside the leader, that may hold it
	over  bool     // it cannot be won any more
}

func newRace(view View, id consensus.ProposalID, asked []uint64, rules tally.Rules) *race {
	r := &race{view: view, id: id, asked: slices.Clone(asked), tally: tally.Tally{Rules: rules}}
	voters := make([]consensus.MemberID, len(view.Voters))
	for i, voter := range view.Voters {
		voters[i] = consensus.MemberID(voter)
	}
	r.tally.Reset(voters)
	r.tally.Open(id)
	return r
}

// take notes what a member said, and reports whether the proposal is decided by it.
func (r *race) take(member uint64, leads bool, on termConfig, v *quoratepb.Verdict) (tally.Decision, bool) {
	if v.Revision == 0 {
		r.over = r.over || leads // it goes the slow way
		r.asked = slices.DeleteFunc(r.asked, func(id uint64) bool { return id == member })
		return tally.Decision{}, false
	}
	attempt := consensus.Attempt{Proposal: r.id, Revision: v.Revision}
	if on != r.view.termConfig || r.over || !slices.Contains(r.view.Voters, member) || len(v.Digest) != len(attempt.Digest) {
		return tally.Decision{}, false
	}
	// Members make the command of what they get, and put into it what they know of the user: it need not be the same.
	attempt.Digest = consensus.Digest(v.Digest)
	if leads {
		return r.tally.Answered(consensus.MemberID(member), consensus.Verdict{Attempt: attempt, Reply: v.Response})
	}
	return r.tally.Accepted(consensus.MemberID(member), attempt)
}

// mayOutlive reports whether so many voters may hold the proposal that a new leader could find it, although the leader that
// it was offered to has refused it.
func (r *race) mayOutlive() bool { return len(r.asked) >= quorum.Recovery(len(r.view.Voters)) }
