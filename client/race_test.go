package client

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// TestRace_take counts as members count, whatever comes in whatever order.
func TestRace_take(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	won := 0
	for range 20000 {
		n := 1 + random.IntN(7)
		g := view{termConfig: termConfig{term: 3, index: 9}, leader: 1}
		var count tally.Tally
		var voters []consensus.MemberID
		for id := range n {
			g.voters = append(g.voters, uint64(id+1))
			voters = append(voters, consensus.MemberID(id+1))
		}
		id := consensus.ProposalID{Session: consensus.ClientSession(7, 1), Sequence: 1}
		count.Reset(voters)
		count.Open(id)
		r := &race{view: g}
		for range 2 * n {
			member, on := uint64(1+random.IntN(n+1)), g.termConfig
			attempt := consensus.Attempt{Proposal: id, Revision: uint64(5 + random.IntN(2)*random.IntN(2))}
			current := random.IntN(6) > 0
			if !current {
				on.term++
			}
			leads := member == g.leader
			got := r.take(member, leads, on, &quoratepb.Verdict{Revision: attempt.Revision})
			want, revision := false, uint64(0)
			if current {
				var w tally.Decision
				if leads {
					w, want = count.Answered(1, consensus.Verdict{Attempt: attempt})
				} else {
					w, want = count.Accepted(consensus.MemberID(member), attempt)
				}
				revision = w.Revision
			}
			if got != want || want && r.revision != revision {
				t.Fatalf("%d voters, %d at %d: got %v at %d, want %v at %d", n, member, attempt.Revision, got, r.revision, want, revision)
			}
			if want {
				won++
				break
			}
		}
	}
	if won < 1000 {
		t.Errorf("only %d were won", won)
	}
}

// TestRace_mayOutlive knows how many may hold what the leader refused.
func TestRace_mayOutlive(t *testing.T) {
	r := &race{view: view{leader: 1, voters: []uint64{1, 2, 3, 4, 5}}, asked: []uint64{2, 3, 4, 5}}
	for i, id := range []uint64{2, 2, 3, 4} {
		if !r.mayOutlive() {
			t.Errorf("after %d refusals: nothing can come of it", i)
		}
		r.take(id, false, termConfig{}, &quoratepb.Verdict{Refusal: 3})
	}
	if r.mayOutlive() {
		t.Error("one voter that may hold it is enough")
	}
}
