package tally

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Rules are the rules of package rules that a test has a Tally go without.
type Rules struct{ ProposerAnyAttempt, ProposerAnyPayload, SuperquorumLess bool }

// Without returns those among the rules that a test drops.
func Without(dropped *rules.Set) Rules {
	return Rules{dropped[rules.ProposerAnyAttempt], dropped[rules.ProposerAnyPayload], dropped[rules.SuperquorumLess]}
}

// Tally counts for the proposals under way. The zero value has none.
type Tally struct {
	Rules  Rules
	voters []consensus.MemberID
	races  map[consensus.ProposalID]*race
}

// race is one proposal.
type race struct {
	accepted []acceptance // at most one of each voter
	leader   consensus.Verdict
	answered bool // by the leader
}

type acceptance struct {
	voter   consensus.MemberID
	attempt consensus.Attempt
}

// Decision is a proposal that is decided: it will be applied at that revision, with that result, whatever happens.
type Decision struct {
	consensus.Attempt
	Reply  []byte
	Config consensus.ConfigID // under which it was decided; the user of the Tally knows it
	Waited consensus.Waited   // whose answer was the last; the user of the Tally knows it
}

// Len returns how many proposals are under way.
func (t *Tally) Len() int { return len(t.races) }

// Reset forgets everything, and counts among voters from now on. It keeps voters.
func (t *Tally) Reset(voters []consensus.MemberID) { t.voters, t.races = voters, nil }

// Open begins to count for a proposal.
func (t *Tally) Open(id consensus.ProposalID) {
	if t.races == nil {
		t.races = map[consensus.ProposalID]*race{}
	}
	if t.races[id] == nil {
		t.races[id] = &race{}
	}
}

// End says how far a proposal had come when it was closed.
type End uint8

// The ends.
const (
	EndUnknown   End = 0 // it was not under way
	EndOpen      End = 1 // the leader did not answer it, or took it the slow way
	EndOvertaken End = 2 // all who had answered said the same: it was only overtaken by its commit
	EndDisagreed End = 3
)

// Close forgets a proposal.
func (t *Tally) Close(id consensus.ProposalID) End {
	r := t.races[id]
	if r == nil {
		return EndUnknown
	}
	delete(t.races, id)
	if !r.answered {
		return EndOpen
	}
	for i := range r.accepted {
		if r.accepted[i].attempt != r.leader.Attempt {
			return EndDisagreed
		}
	}
	return EndOvertaken
}

// Accepted notes that a voter holds an attempt durably.
func (t *Tally) Accepted(voter consensus.MemberID, attempt consensus.Attempt) (Decision, bool) {
	r := t.races[attempt.Proposal]
	if r == nil || !slices.Contains(t.voters, voter) {
		return Decision{}, false
	}
	for i := range r.accepted {
		if r.accepted[i].voter == voter {
			return Decision{}, false // a voter holds one attempt of a proposal in one term
		}
	}
	r.accepted = append(r.accepted, acceptance{voter, attempt})
	return t.judge(attempt.Proposal, r)
}

// Answered notes that the leader holds an attempt durably in its log, and what its result is.
func (t *Tally) Answered(leader consensus.MemberID, verdict consensus.Verdict) (Decision, bool) {
	r := t.races[verdict.Proposal]
	if r == nil || r.answered {
		return Decision{}, false
	}
	r.leader, r.answered = verdict, true
	if slices.Contains(t.voters, leader) {
		r.accepted = append(r.accepted, acceptance{leader, verdict.Attempt})
	}
	return t.judge(verdict.Proposal, r)
}

// agree reports whether two answers name one attempt.
func (t *Tally) agree(a, b consensus.Attempt) bool {
	return a == b || t.Rules.ProposerAnyAttempt || t.Rules.ProposerAnyPayload && a.Revision == b.Revision
}

// judge says whether a proposal has succeeded, and closes it then.
func (t *Tally) judge(id consensus.ProposalID, r *race) (Decision, bool) {
	if !r.answered {
		return Decision{}, false
	}
	holders := 0
	for i := range r.accepted {
		if t.agree(r.accepted[i].attempt, r.leader.Attempt) {
			holders++
		}
	}
	enough := quorum.Super(len(t.voters))
	if t.Rules.SuperquorumLess {
		enough--
	}
	if holders < enough {
		return Decision{}, false
	}
	delete(t.races, id)
	return Decision{Attempt: r.leader.Attempt, Reply: r.leader.Reply}, true
}
