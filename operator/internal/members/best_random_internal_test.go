package members

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/operator/internal/decide"
)

// peer is a member with a claim, as it is whatever it tells.
type peer struct {
	life  int // its cluster's: each recovery begins another one
	tells bool
	claim string // the epoch that is noted on it
}

// peers is a cluster of which recoveries leave members out, while builds that tell their epoch come and go.
type peers struct {
	rand  *rand.Rand
	all   []*peer
	terms []uint64 // of each life
}

func (*peers) epoch(life int) string { return fmt.Sprintf("%d-e%d", life, life) }

// describe is what a member tells while its life has a leader, which is always so: also those that were left out work on.
func (p *peers) describe(i int) *quoratepb.Cluster {
	own := p.all[i]
	c := &quoratepb.Cluster{ClusterId: 9, Leader: 1, Term: p.terms[own.life], Config: &quoratepb.ConfigID{Index: 5}}
	if own.tells {
		c.Epoch = p.epoch(own.life)
	}
	for k, other := range p.all {
		if other.life == own.life {
			c.Members = append(c.Members, &quoratepb.Member{Name: strconv.Itoa(k)})
		}
	}
	return c
}

// change lets something happen of which claims do not know yet.
func (p *peers) change() {
	last := len(p.terms) - 1
	switch one := p.all[p.rand.IntN(len(p.all))]; p.rand.IntN(8) {
	case 0: // somebody recovers a member of the last life without the others
		if one.life == last {
			one.life, p.terms = last+1, append(p.terms, p.terms[last])
		}
	case 1, 2:
		p.all = append(p.all, &peer{life: last, tells: p.rand.IntN(2) == 0})
	case 3, 4:
		p.terms[p.rand.IntN(len(p.terms))] += 1 + p.rand.Uint64N(3)
	default: // it is upgraded, or its build is taken back
		one.tells = !one.tells
	}
}

// look is what the operator does: it takes the answers of some, and notes the epoch on the claims of those that the leader names.
func (p *peers) look(answered []int) int {
	claims := make([]decide.Claim, len(p.all))
	seats, described := make([]Seat, len(p.all)), make([]*quoratepb.Cluster, len(p.all))
	for i, one := range p.all {
		claims[i].Epoch = decide.ParseEpoch(one.claim)
		seats[i], described[i] = Seat{Member: strconv.Itoa(i), Epoch: claims[i].Epoch}, p.describe(i)
	}
	best, _ := bestOf(seats, described, answered, 9, decide.Newest(claims))
	if best >= 0 && described[best].GetEpoch() != "" {
		for _, m := range described[best].GetMembers() {
			i, _ := strconv.Atoi(m.GetName())
			p.all[i].claim = described[best].GetEpoch()
		}
	}
	return best
}

// Ensure that, whatever builds tell their epoch and whoever answers, no member that a recovery left out counts once that is noted on a
// claim, and each that is noted does, also if its build was taken back.
func TestBestOf_random(t *testing.T) {
	silent := 0 // looks at which only builds that tell nothing answered, and counted
	for seed := range 300 {
		p := &peers{rand: rand.New(rand.NewPCG(uint64(seed), 7)), terms: []uint64{1}}
		for range 3 {
			p.all = append(p.all, &peer{tells: p.rand.IntN(2) == 0})
		}
		for range 60 {
			p.change()
			answered := slices.DeleteFunc(p.rand.Perm(len(p.all)), func(int) bool { return p.rand.IntN(3) == 0 })
			noted, known, told := 0, false, false
			for _, one := range p.all {
				if one.claim != "" {
					noted = max(noted, int(decide.ParseEpoch(one.claim).Number))
				}
			}
			for _, i := range answered {
				known = known || p.all[i].claim == p.epoch(noted) || p.all[i].tells && p.all[i].life >= noted
				told = told || p.all[i].tells
			}
			best := p.look(answered)
			switch {
			case best < 0 && known:
				t.Fatalf("seed %d: of %v nobody counts, and claims are of epoch %d", seed, answered, noted)
			case best >= 0 && p.all[best].life < noted:
				t.Fatalf("seed %d: %d counts, which a recovery left out: it is of epoch %d, and claims of %d", seed, best, p.all[best].life, noted)
			case best >= 0 && !told && noted > 0:
				silent++
			}
		}
	}
	if silent == 0 {
		t.Error("no look had only builds that tell nothing")
	}
}
