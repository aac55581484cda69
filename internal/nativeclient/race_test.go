package nativeclient

import (
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// said is what a member says that holds a proposal, at a revision, with the payload that every member gets, or with another
// one.
func said(revision uint64, other bool) *quoratepb.Verdict {
	var d consensus.Digest
	if other {
		d[31] = 1
	}
	return &quoratepb.Verdict{Session: 7, Sequence: 1, Revision: revision, Digest: d[:], Response: []byte("fast")}
}

// TestRace_take counts every voter once, those of the leader's revision and payload only, and nothing of another term.
func TestRace_take(t *testing.T) {
	type answer struct {
		revision uint64
		other    bool // it holds another payload
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	won := 0
	for range 20000 {
		n := 1 + random.IntN(7)
		g := View{termConfig: termConfig{term: 3, index: 9}, Leader: 1}
		for id := range n {
			g.Voters = append(g.Voters, uint64(id+1))
		}
		r := newRace(g, consensus.ProposalID{Sequence: 1}, g.Voters[1:], tally.Rules{})
		first := map[uint64]answer{} // by voter
		for range 2 * n {
			member, on := uint64(1+random.IntN(n+1)), g.termConfig
			says := answer{uint64(5 + random.IntN(2)*random.IntN(2)), random.IntN(8) == 0}
			if random.IntN(6) == 0 {
				on.term++
			} else if first[member].revision == 0 && member <= uint64(n) {
				first[member] = says
			}
			_, got := r.take(member, member == g.Leader, on, said(says.revision, says.other))
			same := 0
			for _, at := range first {
				if at == first[g.Leader] {
					same++
				}
			}
			want := first[g.Leader].revision != 0 && same >= quorum.Super(n)
			if got != want {
				t.Fatalf("%d voters, after %d: got %v, want %v: %v", n, member, got, want, first)
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

// TestRace_take_noDigest counts nothing that a member says which does not tell what it holds: one of an earlier release.
func TestRace_take_noDigest(t *testing.T) {
	r := newRace(fiveVoters, consensus.ProposalID{Sequence: 1}, []uint64{2, 3, 4, 5}, tally.Rules{})
	for _, id := range fiveVoters.Voters {
		v := said(8, false)
		v.Digest = v.Digest[:id%2*16]
		if _, decided := r.take(id, id == fiveVoters.Leader, fiveVoters.termConfig, v); decided {
			t.Errorf("it is decided with the word of %d", id)
		}
	}
}

// TestRace_mayOutlive knows how many may hold what the leader refused.
func TestRace_mayOutlive(t *testing.T) {
	r := newRace(fiveVoters, consensus.ProposalID{Sequence: 1}, []uint64{2, 3, 4, 5}, tally.Rules{})
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
