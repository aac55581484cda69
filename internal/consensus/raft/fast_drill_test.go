package raft_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// drill is a turn whose moves are drawn: who hears of a proposal, who votes, whom a leader brings in line and how far. Nothing
// happens by itself, so that a dozen moves go as deep as a turn written by hand.
type drill struct {
	*turn
	rng  *rand.Rand
	keys []string
}

func (x *drill) members(odds int) []memberID {
	var ids []memberID
	for _, n := range x.nodes {
		if x.rng.IntN(100) < odds {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// last returns the leader of the latest term, or now and then of any.
func (x *drill) last() *node {
	var best *node
	for _, n := range x.nodes {
		if leadsNow(n) && (best == nil || n.replica.Term() > best.replica.Term()) {
			best = n
		}
	}
	return best
}

func (x *drill) name() (name, on string) {
	at := len(x.ids)
	if at > 0 && x.rng.IntN(4) == 0 {
		at = x.rng.IntN(len(x.ids))
	}
	for at >= len(x.keys) {
		x.keys = append(x.keys, []string{"a", "a", "b", "c", "d", "-", "ab"}[x.rng.IntN(7)])
	}
	return "P" + strconv.Itoa(at), x.keys[at]
}

func (x *drill) move() {
	leader, id := x.last(), memberID(1+x.rng.IntN(len(x.nodes)))
	name, on := x.name()
	via := id
	for _, at := range x.rng.Perm(len(x.nodes)) {
		if n := x.nodes[at]; leader != nil && n != leader && n.replica.Leader() == leader.id {
			via = n.id
		}
	}
	switch move := x.rng.IntN(20); {
	case move < 6:
		x.fast(name, on, via, x.members(93)...)
	case move < 9: // some, and maybe the leader
		x.fast(name, on, via, x.members([]int{30, 50}[x.rng.IntN(2)])...)
	case move < 13:
		x.reign(id)
	case leader == nil:
	case move < 14:
		x.slow(name, on, leader.id)
	case move < 15:
		x.tell(leader.id, x.members(60)...)
	case move < 16:
		x.give(leader.id, x.members(50)...)
	case move < 19:
		back := consensus.Index(x.rng.IntN(4))
		x.giveUpTo(leader.last()-min(back, leader.last()-1), x.rng.IntN(2) == 0, leader.id, x.members(40)...)
	default:
		x.falls(id)
	}
}

// reign makes somebody lead, and mostly lets its term begin: those who voted have its first entries.
func (x *drill) reign(id memberID) {
	votes := x.members(60)
	if !x.campaigns(2, id, votes...) {
		return
	}
	if x.rng.IntN(10) < 6 {
		x.give(id, votes...)
	}
	if x.rng.IntN(2) == 0 {
		x.tell(id, x.members(70)...)
	}
}

func drilled(t *testing.T, seed uint64, moves int, faults raft.FastFaults, shell shellFaults) (x *drill, err error) {
	rng := rand.New(rand.NewPCG(seed, 11))
	x = &drill{turn: newTurn(t, []int{3, 3, 4, 4, 5}[rng.IntN(5)], faults, shell), rng: rng}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for range moves {
		x.move()
		if x.laws.broken != "" {
			return x, fmt.Errorf("%s", x.laws.broken)
		}
	}
	if leader := x.last(); leader != nil {
		x.give(leader.id, x.members(100)...)
	}
	x.laws.same()
	if x.laws.broken != "" {
		return x, fmt.Errorf("%s", x.laws.broken)
	}
	return x, nil
}

// Ensure that no drill breaks a law. FAST_SEED and FAST_RUNS choose them as for walks; with FAST_FAULT=name a rule is off.
func TestReplica_Step_fastDrills(t *testing.T) {
	first, runs := uint64(1), uint64(600)
	if testing.Short() {
		runs = 100
	}
	if s := os.Getenv("FAST_RUNS"); s != "" {
		runs, _ = strconv.ParseUint(s, 10, 64)
	}
	if s := os.Getenv("FAST_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	wins, recovered, skipped := 0, 0, 0
	for seed := first; seed < first+runs; seed++ {
		x, err := drilled(t, seed, 16, raft.FastFaults{}, shellFaults{})
		if err != nil {
			t.Fatalf("FAST_SEED=%d: %v\n%s", seed, err, x.trace)
		}
		wins, recovered, skipped = wins+len(x.laws.wins), recovered+x.laws.recoveredWins, skipped+x.laws.skipped
	}
	t.Logf("%d drills: %d wins, %d of them recovered by a later leader, %d entries passed over", runs, wins, recovered, skipped)
	if wins*1000 < 500*int(runs) || recovered*1000 < 100*int(runs) || skipped*1000 < 5*int(runs) {
		t.Errorf("too little happens in these drills")
	}
}

// Ensure that drills find faults. FAST_FAULT=name asks for one of the table.
func TestReplica_Step_fastDrillsFind(t *testing.T) {
	names, runs := []string{"voter: keys held", "votes carry nothing", "superquorum one less", "truncation forgets"}, uint64(3000)
	if s := os.Getenv("FAST_FAULT"); s != "" {
		names, runs = []string{s}, 20000
	}
	for i := range fastFaults {
		f := &fastFaults[i]
		for _, name := range names {
			if strings.Contains(f.name, name) {
				f.drill(t, runs)
			}
		}
	}
}

func (f *fastFault) drill(t *testing.T, runs uint64) {
	var faults raft.FastFaults
	if f.set != nil {
		f.set(&faults)
	}
	for seed := uint64(1); seed <= runs; seed++ {
		if _, err := drilled(t, seed, 16, faults, f.shell); err != nil {
			t.Logf("%-42s drill %d: %v", f.name, seed, err)
			return
		}
	}
	t.Errorf("%s: %d drills broke no law", f.name, runs)
}
