package raft_test

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// profile is the aim of a walk: which moves it draws, how often, and where it begins. Moves are those of the table in
// walk_moves_test.go.
type profile struct {
	name  string
	about string
	begin func(x *walk, seed uint64, without rules.Set, adapt func(*raft.Options))
	steps int
	// plan is drawn first, a line each: "1-3 fast slow" is one to three moves, each one of these.
	plan []string
	// weights are the weights of moves, "elect=12": instead of the usual ones, which a profile of begin beginFast draws.
	weights string
	quiet   string // moves that are drawn very rarely
	gentle  bool   // few messages are lost
	lose    int    // per cent of the proposals that do not reach the leader, if not the usual one
	changes bool   // of members
}

var profiles = []*profile{
	{name: "messages", about: "single messages and faults, one at a time", begin: beginMessages, steps: 6000, changes: true,
		weights: `deliver=500 drain=140 sync=80 tick-one=140 apply-some=10 say=30 read=30 slow-disk=10 crash=8 transfer=8 compact=6
			unreachable=6 partition=6 reconfigure=13 campaign=3 hold-apply=3 flush=2 switch-off=1 quick-disk=4`},
	{name: "strict", about: "the lines of stories: nothing arrives but what a move says", begin: beginStrict, steps: 16,
		weights: "hear=6 hear-some=3 reign=4 log=1 tell=1 give=1 give-up-to=3 fall=1"},

	// The others are of the fast path: a move is the effect of a few messages together, so that likely combinations of faults
	// are not rare.
	{name: "swarm", about: "anything", begin: beginFast, steps: 60},
	{name: "churn", about: "successes, then elections with little replication", begin: beginFast, steps: 60,
		plan: []string{"1-3 fast"}, weights: "elect=12 partial=16 fast=3", gentle: true,
		quiet: "acks apply crash crash-all ask repl repl-all slow late wait tick transfer pump"},
	{name: "skips", about: "records without a leader's entry, entries passed over, retries", begin: beginFast, steps: 60,
		plan: []string{"1-1 orphan", "1-2 slow fast", "1-1 repl-all", "1-1 elect", "1-2 repl-all repl partial", "1-2 retry",
			"0-2 repl-all partial", "1-2 elect", "1-1 repl-all"},
		weights: "slow=6 retry=8 fast=6 apply=3 acks=6 elect=5 repl-all=6", gentle: true, lose: 30,
		quiet: "crash crash-all ask hold wait tick transfer pump"},
	{name: "stale", about: "half-lost proposals of an old term meet those of a new one", begin: beginFast, steps: 60, gentle: true,
		plan: []string{"1-2 fast-lossy", "1-1 elect", "1-1 touch", "1-2 repl partial", "1-1 acks", "1-3 fast", "0-2 repl partial touch",
			"1-1 elect", "0-2 partial", "0-1 elect", "0-2 partial", "0-1 elect", "0-2 partial", "1-1 repl-all"}},
	{name: "changes", about: "changes between proposals", begin: beginFast, steps: 60, changes: true,
		plan: []string{"0-3 change-round fast"}, weights: "change-round=5 elect=6 fast=8 repl-all=5",
		quiet: "crash crash-all ask slow"},
	{name: "rivals", about: "competing changes", begin: beginFast, steps: 60, changes: true,
		plan: []string{"1-1 change-round", "0-1 fast", "1-1 elect", "0-2 touch repl", "1-1 change-round", "1-2 fast", "0-1 partial repl",
			"1-1 elect", "0-1 change-round", "0-1 fast", "1-1 repl-all"}},
	{name: "pairs", about: "what the leader has and what the voters hold differ", begin: beginFast, steps: 60,
		plan: []string{"0-1 fast slow", "1-3 orphan alone fast-lossy", "1-2 fast", "0-1 touch partial", "1-1 elect",
			"0-2 orphan alone slow", "0-2 partial repl", "1-1 fast", "1-2 elect", "1-1 repl-all"},
		weights: "elect=8 partial=6 orphan=4 alone=4", gentle: true, lose: -1,
		quiet: "crash crash-all ask wait transfer apply pump"},
	{name: "drowsy", about: "slow disks and falls", begin: beginFast, steps: 60,
		plan: []string{"1-2 drowse", "1-1 elect", "0-1 repl partial", "1-1 drowse"}, weights: "drowse=8 elect=6 hold=3", gentle: true},
	{name: "reading", about: "reads", begin: beginFast, steps: 60, weights: "ask=12 fast=8 repl-all=4", quiet: "crash crash-all wait"},
}

func profileOf(name string) *profile {
	return profiles[slices.IndexFunc(profiles, func(p *profile) bool { return p.name == name })]
}

// stretch draws the moves of one line of a plan.
func (x *walk) stretch(line string) (names []string) {
	words := strings.Fields(line)
	low, high, _ := strings.Cut(words[0], "-")
	least, _ := strconv.Atoi(low)
	most, _ := strconv.Atoi(high)
	for range least + x.some(most-least+1) {
		names = append(names, words[1+x.some(len(words)-1)])
	}
	return names
}

// weigh sets the weights that a profile names.
func (x *walk) weigh(list string) {
	for _, word := range strings.Fields(list) {
		name, value, _ := strings.Cut(word, "=")
		x.weights[moveOf(name)], _ = strconv.Atoi(value)
	}
}

// beginStrict is the beginning of stories.
func beginStrict(x *walk, _ uint64, without rules.Set, _ func(*raft.Options)) {
	x.story = newStory([]int{3, 3, 4, 4, 5}[x.some(5)], without)
	x.trace = nil
}

// beginMessages draws a cluster, mostly with changes of members, and the rate of faults.
func beginMessages(x *walk, seed uint64, without rules.Set, adapt func(*raft.Options)) {
	voters := []memberID{1, 2, 3, 4, 5}[:[]int{1, 2, 3, 3, 4, 5}[x.some(6)]]
	var learners []memberID
	if x.some(3) == 0 {
		learners = []memberID{6, 7}[:1+x.some(2)]
	}
	inflight, size, strict := 1+x.some(8), 100+x.some(2000), x.some(2) == 0
	x.lease = x.some(4) == 0
	c := newCluster(slices.Clone(voters), learners, func(o *raft.Options) {
		o.Seed = seed
		o.MaxInflightMessages, o.MaxMessageBytes, o.MaxUncommittedBytes = inflight, size, 4000
		o.StrictReconfig, o.LeaderLease, o.Dropped = strict, x.lease, without
		if seed%4 == 1 {
			narrowest(o)
		}
		if adapt != nil {
			adapt(o)
		}
	})
	x.start(c, without)
	x.nextID, x.changes = 8, x.some(5) > 0
	x.only = []consensus.Protocol{0, 0, 0, 1, 2, 3, 4, 5}[x.some(8)]
	if x.only == consensus.ProtocolAuto {
		x.only = anyProtocol
	}
	c.lossy, c.infer = x.some(2) == 0, seed%3 > 0
	for m := range x.weights {
		x.weights[m] *= 10
	}
	x.loss = []int{15, 15, 100}[x.some(3)]
	calm := []int{0, 10, 50, 200}[x.some(4)]
	x.weights[moveOf("settle")] = calm
	x.weights[moveOf("drain")] -= calm
	rare := []int{1, 1, 3, 10}[x.some(4)] // changes get further with fewer faults
	for _, name := range []string{"slow-disk", "crash", "transfer", "unreachable", "partition"} {
		x.weights[moveOf(name)] /= rare
	}
}

// beginFast draws a cluster with the fast path, a leader, weights for all moves, and a plan.
func beginFast(x *walk, seed uint64, without rules.Set, adapt func(*raft.Options)) {
	n := []int{1, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 7}[x.some(15)]
	var voters, learners []memberID
	for id := range n {
		voters = append(voters, memberID(id+1))
	}
	x.nextID = memberID(n + 1)
	if x.some(6) == 0 || x.profile.changes {
		learners = append(learners, x.nextID)
		x.nextID++
	}
	x.changes = x.profile.changes || x.some(6) == 0
	x.lease = x.some(20) == 0
	careful := x.lease || x.some(5) == 0
	bytes := []int{1, 100, 4000, 4000}[x.some(4)]
	c := newCluster(voters, learners, func(o *raft.Options) {
		o.ElectionTicks, o.HeartbeatTicks, o.Seed = 5, 1, seed
		o.MaxMessageBytes, o.PreVote, o.CheckQuorum, o.LeaderLease = bytes, careful, careful, x.lease
		o.StrictReconfig, o.Dropped, o.Fast.Footprint = careful, without, footprintOf
		if adapt != nil {
			adapt(o)
		}
	})
	x.start(c, without)
	c.lossy, c.infer = x.some(2) == 0, x.some(3) > 0
	x.only = consensus.Protocol(x.some(7)) // anyProtocol: each change draws its own
	x.prepare()
	x.elect(1)
	x.tick(1)
}

// anyProtocol lets each change draw its own.
const anyProtocol = consensus.Protocol(6)

// prepare draws the weights and the plan of a walk on the fast path.
func (x *walk) prepare() {
	x.drop = []int{0, 5, 15, 30}[x.some(4)]
	x.lose, x.late = 5, 50
	palettes := [][]string{
		{"a", "b"}, {"a", "a", "a", "b", "b", "ab"}, {"a", "b", "c", "d", "e", "~f"}, {"a", "~a", "b", "ab", "c", "d", "*", "!"},
		{"a", "b", "c", "ab", "bc", "d", "-", "-"}, {"a", "b", "c", "d", "e", "f", "g", "h", "ab", "cd"}, {"a", "b", "c", "d"},
	}
	x.palette = palettes[x.some(len(palettes))]
	w := x.weights
	for _, name := range strings.Fields("retry slow elect touch partial repl repl-all acks apply crash start ask pump tick compact " +
		"change change-round fast") {
		w[moveOf(name)] = []int{0, 1, 3, 8}[x.some(4)]
	}
	for _, name := range strings.Fields("orphan alone fast-lossy drowse hold late") {
		w[moveOf(name)] = x.some(3)
	}
	for _, name := range strings.Fields("crash-all transfer") {
		w[moveOf(name)] = min(x.some(4), 1)
	}
	w[moveOf("wait")] = x.some(4) / 2 * x.some(2)
	for name, more := range map[string]int{"fast": 5, "elect": 2, "repl": 3, "repl-all": 3, "start": 2} {
		w[moveOf(name)] += more
	}
	if x.pct(60) {
		x.plan = append(x.plan, "fast")
	}
	for _, name := range strings.Fields(x.profile.quiet) {
		w[moveOf(name)] = x.some(10) / 7
	}
	x.weigh(x.profile.weights)
	for _, line := range x.profile.plan {
		x.plan = append(x.plan, x.stretch(line)...)
	}
	if x.profile.gentle {
		x.drop = []int{0, 5, 10}[x.some(3)]
	}
	switch {
	case x.profile.lose < 0:
		x.lose = 0
	case x.profile.lose > 0:
		x.lose = x.profile.lose
	}
	if !x.changes {
		w[moveOf("change")], w[moveOf("change-round")] = 0, 0
	}
}
