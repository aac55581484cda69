package raft_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Ensure that no walk breaks a law of Raft or of the fast path, and that the cluster recovers once the faults end.
// WALK_PROFILE=name chooses a profile; WALK_SEED=n plays one walk of it and prints it, WALK_RUNS=n plays n more, from seed 1 or
// WALK_SEED on.
func TestReplica_Step_walks(t *testing.T) {
	for _, tc := range []struct {
		profile     string
		runs, short uint64
		heals       uint64         // one walk in so many ends with heal
		least       map[string]int // events in a thousand walks, at least: else walks find nothing
	}{
		{"messages", 60, 20, 1, map[string]int{"committed": 30000, "reads": 20000, "snapshots": 500, "changes": 500}},
		{"strict", 300, 100, 0, map[string]int{"decided": 500, "recovered decisions": 100, "passed over": 5}},
		{"", 600, 200, 4, map[string]int{
			"elections": 1000, "decided": 1000, "recovered decisions": 100, "recovered": 300, "passed over": 40, "aborted": 100,
			"reads": 300, "reads the leader did not answer": 150, "leaders checked": 3000, "snapshots": 20, "changes": 100,
			"refused: term": 300, "refused: config": 5, "refused: conflict": 1000, "refused: known": 200, "refused: closed": 100,
		}},
	} {
		t.Run(strings.TrimSpace("profile "+tc.profile), func(t *testing.T) {
			first, runs := uint64(1), tc.runs
			if testing.Short() {
				runs = tc.short
			}
			chosen := os.Getenv("WALK_PROFILE")
			if chosen != "" && chosen != tc.profile && (tc.profile != "" || fixed(chosen)) {
				t.Skip("another profile is asked for")
			}
			if seed, err := strconv.ParseUint(os.Getenv("WALK_SEED"), 10, 64); err == nil {
				first, runs = seed, 1
			}
			if n, err := strconv.ParseUint(os.Getenv("WALK_RUNS"), 10, 64); err == nil {
				runs = n
			}
			sum := covered{}
			for seed := first; seed < first+runs; seed++ {
				p := profileFor(seed, tc.profile)
				if chosen != "" {
					p = profileOf(chosen)
				}
				heal := tc.heals > 0 && seed%tc.heals == 0
				x := newWalk(seed, p, rules.Set{}, nil)
				if err := x.run(heal); err != nil {
					t.Fatalf("WALK_PROFILE=%s WALK_SEED=%d: %v\n%s", p.name, seed, err, replay(seed, p, rules.Set{}, 300, heal))
				}
				sum.add(x)
			}
			t.Logf("seeds %d to %d: %v", first, first+runs-1, sum)
			for what, least := range tc.least {
				if runs >= tc.short && sum[what]*1000 < least*int(runs) {
					t.Errorf("%s: %d in %d walks, want %d in 1000", what, sum[what], runs, least)
				}
			}
		})
	}
}

// fixed reports whether a profile is not drawn among others.
func fixed(name string) bool { return name == "messages" || name == "strict" }

// profileFor draws one of the profiles of the fast path, unless name is given; profile swarm in a third of the walks.
func profileFor(seed uint64, name string) *profile {
	if name != "" {
		return profileOf(name)
	}
	drawn := slices.DeleteFunc(slices.Clone(profiles), func(p *profile) bool { return fixed(p.name) })
	if seed%3 == 0 {
		return drawn[0]
	}
	return drawn[(seed-seed/3)%uint64(len(drawn))]
}

// covered counts the events of walks.
type covered map[string]int

func (s covered) add(x *walk) {
	counts := x.counts()
	for what, n := range map[string]int{
		"walks": 1, "moves": x.moved, "messages": x.delivered, "elections": x.elections, "decided": len(x.laws.wins),
		"committed": len(x.laws.committed), "passed over": x.laws.skipped, "aborted": x.laws.aborted, "reads": x.laws.laws.reads,
		"reads the leader did not answer": x.laws.early, "leaders checked": x.laws.opened, "snapshots": x.laws.snapshots,
		"recovered": int(counts.Recovered), "recovered decisions": x.laws.recoveredWins,
	} {
		s[what] += n
	}
	for why, n := range counts.Refused {
		s["refused: "+consensus.Refused(why).String()] += int(n)
	}
	for _, n := range x.laws.protocols {
		s["changes"] += n
	}
}

// Ensure that the laws are really checked: without a rule some walk breaks one. WALK_RULE=name searches for one rule, also
// among those that a story shows. The other rules have a story (testdata/rule_*.txt), or a test of their own.
func TestReplica_Step_walksWithout(t *testing.T) {
	for _, tc := range walkRules {
		if asked := os.Getenv("WALK_RULE"); asked != "" && asked != tc.rules {
			continue
		}
		t.Run(tc.profile+" without "+tc.rules, func(t *testing.T) {
			without, err := drop(strings.Fields(tc.rules)...)
			if err != nil {
				t.Fatal(err)
			}
			for seed := tc.first + 1; seed <= tc.first+3000; seed++ {
				x := newWalk(seed, profileFor(seed, tc.profile), without, nil)
				if err := x.run(false); err != nil && strings.Contains(err.Error(), tc.law) {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no walk broke a law")
		})
	}
}

// walkRules are the rules whose absence walks of a profile notice, and the law that breaks.
var walkRules = []struct {
	rules, profile, law string
	first               uint64 // the search begins after this seed, where walks that find it are rare
}{
	{"vote-twice", "messages", "election safety", 0},
	{"ack-before-durable", "messages", "", 0},
	{"two-changes", "messages", "uncommitted changes", 0},
	{"count-learners", "messages", "", 0},
	{"durable-too-soon", "messages", "", 0},
	{"witness-no-pool-keys", "strict", "L1", 4700},
	{"vote-without", "strict", "L", 0},
	{"superquorum-less", "strict", "L", 0},
	{"truncate-forgets", "strict", "L", 1900},
	{"witness-no-log-keys leader-no-log-keys", "", "L", 0},
	{"witness-no-pool-order", "", "L", 0},
	{"leader-no-log-order", "", "L", 0},
	{"vote-without", "", "L", 0},
	{"recover-more", "", "L", 0},
	{"recover-descending", "", "L", 0},
	{"read-past-pool", "reading", "L6", 0},
	{"read-commit-index", "reading", "L6", 0},
	{"read-forgets-answers", "reading", "L6", 0},
	{"read-below-noop", "reading", "L6", 150},
	{"proposer-any-attempt", "", "L", 0},
	{"superquorum-less", "", "L", 0},
	{"apply-twice", "", "L", 0},
	{"skip-applies", "", "L", 0},
	{"skip-is-result", "", "L", 0},
}
