package tally_test

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/tally"
)

func attempt(sequence, revision uint64) consensus.Attempt {
	return consensus.Attempt{Proposal: consensus.ProposalID{Sequence: sequence}, Revision: revision}
}

func ofPayload(a consensus.Attempt) consensus.Attempt {
	a.Digest[0] = 1
	return a
}

func voters(n int) []consensus.MemberID {
	var ids []consensus.MemberID
	for id := range n {
		ids = append(ids, consensus.MemberID(id+1))
	}
	return ids
}

func verdict(sequence, revision uint64, reply string) consensus.Verdict {
	return consensus.Verdict{Attempt: attempt(sequence, revision), Reply: []byte(reply)}
}

// Ensure that, for every size, a proposal is decided by the last of a superquorum, the leader among them, and once.
func TestTally_sizes(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, leaderLast := range []bool{false, true} {
			var count tally.Tally
			count.Reset(voters(n))
			count.Open(attempt(1, 0).Proposal)
			answer := func() (tally.Decision, bool) { return count.Answered(1, verdict(1, 8, "r")) }
			wins, at := 0, 0
			note := func(w tally.Decision, won bool) {
				at++
				if won {
					wins++
					if at != quorum.Super(n) || w.Attempt != attempt(1, 8) || string(w.Reply) != "r" {
						t.Errorf("%d voters: %+v with answer %d, want the %d.", n, w, at, quorum.Super(n))
					}
				}
			}
			if !leaderLast {
				note(answer())
			}
			others := n - 1
			if leaderLast {
				others = quorum.Super(n) - 1
			}
			for id := 2; id <= others+1; id++ {
				note(count.Accepted(consensus.MemberID(id), attempt(1, 8)))
			}
			if leaderLast {
				note(answer())
			}
			note(answer())
			if wins != 1 || count.Len() != 0 {
				t.Errorf("%d voters, leader last %t: won %d times, %d are left", n, leaderLast, wins, count.Len())
			}
		}
	}
}

// Ensure that nothing counts but distinct voters at the leader's revision, for a proposal that is under way.
func TestTally_doNotCount(t *testing.T) {
	for name, say := range map[string]func(count *tally.Tally) (tally.Decision, bool){
		"a voter twice":          func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(2, attempt(1, 8)) },
		"another payload":        func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(3, ofPayload(attempt(1, 8))) },
		"another revision":       func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(3, attempt(1, 9)) },
		"another proposal":       func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(3, attempt(2, 8)) },
		"no voter":               func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(9, attempt(1, 8)) },
		"the leader as a voter":  func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(1, attempt(1, 8)) },
		"the leader twice":       func(x *tally.Tally) (tally.Decision, bool) { return x.Answered(1, verdict(1, 8, "")) },
		"a second answer":        func(x *tally.Tally) (tally.Decision, bool) { return x.Answered(3, verdict(1, 8, "")) },
		"a voter that has moved": func(x *tally.Tally) (tally.Decision, bool) { return x.Accepted(2, attempt(1, 9)) },
	} {
		var count tally.Tally
		count.Reset(voters(3))
		count.Open(attempt(1, 0).Proposal)
		count.Answered(1, verdict(1, 8, ""))
		count.Accepted(2, attempt(1, 8))
		if _, won := say(&count); won || count.Len() != 1 {
			t.Errorf("%s counts: %d are under way", name, count.Len())
		}
	}
}

// Ensure that a leader that is no voter answers and is not counted, and that closing and resetting forget.
func TestTally_leaderOutside_Close_Reset(t *testing.T) {
	var count tally.Tally
	count.Reset(voters(3))
	id := attempt(1, 0).Proposal
	count.Open(id)
	count.Answered(9, verdict(1, 8, ""))
	for voter := consensus.MemberID(1); voter <= 3; voter++ {
		if _, won := count.Accepted(voter, attempt(1, 8)); won != (voter == 3) {
			t.Errorf("voter %v decides: %t", voter, won)
		}
	}
	count.Open(id)
	count.Open(id)
	if first, again := count.Close(id), count.Close(id); first != tally.EndOpen || again != tally.EndUnknown || count.Len() != 0 {
		t.Error("closed twice, or not at all, or agreed on by nobody")
	}
	count.Open(id)
	count.Answered(1, verdict(1, 8, ""))
	count.Accepted(2, attempt(1, 8))
	if count.Close(id) != tally.EndOvertaken {
		t.Error("two of three said the same")
	}
	count.Open(id)
	count.Answered(1, verdict(1, 8, ""))
	count.Accepted(2, attempt(1, 9))
	if count.Close(id) != tally.EndDisagreed {
		t.Error("they said different things")
	}
	for _, forget := range []func(){func() { count.Close(id) }, func() { count.Reset(voters(3)) }} {
		count.Open(id)
		count.Answered(1, verdict(1, 8, ""))
		count.Accepted(2, attempt(1, 8))
		forget()
		count.Open(id)
		if _, won := count.Accepted(3, attempt(1, 8)); won {
			t.Error("what was said before counts")
		}
	}
}

// Ensure, on random answers, that a win is exactly what a list of all answers says, and that each rule, switched off, is missed.
func TestTally_list(t *testing.T) {
	for _, rules := range []tally.Rules{{}, {ProposerAnyAttempt: true}, {ProposerAnyPayload: true}, {SuperquorumLess: true}} {
		differ := 0
		for seed := range uint64(2000) {
			if wins, want := playTally(rand.New(rand.NewPCG(seed, 3)), rules); wins != want {
				differ++
			}
		}
		if (differ > 0) != (rules != tally.Rules{}) {
			t.Errorf("rules %+v: %d of 2000 differ from the list", rules, differ)
		}
	}
}

// playTally gives answers to one proposal, the first of each voter and of the leader counting, and returns whether it was won and
// whether it should.
func playTally(rng *rand.Rand, rules tally.Rules) (won, want bool) {
	n := 1 + rng.IntN(7)
	count := tally.Tally{Rules: rules}
	count.Reset(voters(n))
	count.Open(attempt(1, 0).Proposal)
	said := map[consensus.MemberID]consensus.Attempt{}
	for range 2 * n {
		voter, held := consensus.MemberID(1+rng.IntN(n)), attempt(1, uint64(5+rng.IntN(5)/4))
		if rng.IntN(5) == 0 {
			held = ofPayload(held)
		}
		if _, before := said[voter]; !before {
			said[voter] = held
		}
		var w bool
		if voter == 1 {
			_, w = count.Answered(1, consensus.Verdict{Attempt: held})
		} else {
			_, w = count.Accepted(voter, held)
		}
		won = won || w
		leader, answered := said[1]
		holders := 0
		for _, other := range said {
			if other == leader {
				holders++
			}
		}
		want = want || answered && holders >= quorum.Super(n)
	}
	return won, want
}
