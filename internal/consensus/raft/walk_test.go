package raft_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// walk is a random schedule: a seed and a profile draw its beginning and its moves. After every Step the laws are checked
// (laws_test.go, membership_laws_test.go, fast_laws_test.go).
type walk struct {
	*story
	rng     *rand.Rand
	profile *profile
	weights []int    // of the table of moves
	plan    []string // moves that come before any is drawn
	drop    int      // per cent of the messages of a move that do not arrive
	lose    int      // per cent of the proposals that do not reach the leader
	late    int      // per cent of the lost messages that come later
	loss    int      // of profile messages: one message in so many is lost
	lease   bool
	changes bool
	only    consensus.Protocol

	proposals []consensus.Proposal
	palette   []string
	keys      []string  // of the proposals of profile strict
	past      []message // messages that may arrive again, or late
	readID    uint64
	nextID    memberID
	moved     int
	delivered int
	elections int
}

// newWalk begins a walk without some rules.
func newWalk(seed uint64, p *profile, without rules.Set, adapt func(*raft.Options)) *walk {
	x := &walk{rng: rand.New(rand.NewPCG(seed, 7)), profile: p, weights: make([]int, len(moves))}
	x.weigh(p.weights)
	p.begin(x, seed, without, adapt)
	return x
}

// start makes c the cluster of the walk.
func (x *walk) start(c *cluster, without rules.Set) {
	c.shell = without
	x.story = &story{cluster: c, laws: newFastLaws(c)}
}

func (x *walk) pct(p int) bool { return x.rng.IntN(100) < p }
func (x *walk) some(n int) int { return x.rng.IntN(n) }
func (x *walk) pick() *node    { return x.nodes[x.some(len(x.nodes))] }
func (x *walk) alive() []*node {
	return slices.DeleteFunc(slices.Clone(x.nodes), func(n *node) bool { return n.replica == nil })
}
func (x *walk) broken() bool { return x.laws.broken != "" }

// stay counts the members that are not removed for ever.
func (x *walk) stay() (stay int) {
	for _, n := range x.nodes {
		if !x.laws.retired[n.id] && !n.off {
			stay++
		}
	}
	return stay
}

// someLeader returns a member that takes itself for the leader, mostly that of the latest term.
func (x *walk) someLeader() *node {
	var best *node
	for _, n := range x.nodes {
		if leadsNow(n) && (best == nil || (n.replica.Term() > best.replica.Term()) == x.pct(85)) {
			best = n
		}
	}
	return best
}

// lastLeader returns the leader of the latest term.
func (x *walk) lastLeader() *node {
	var best *node
	for _, n := range x.nodes {
		if leadsNow(n) && (best == nil || n.replica.Term() > best.replica.Term()) {
			best = n
		}
	}
	return best
}

// next draws a move; moves of the plan come first.
func (x *walk) next() *move {
	if len(x.plan) > 0 {
		m := &moves[moveOf(x.plan[0])]
		x.plan = x.plan[1:]
		return m
	}
	total := 0
	for _, w := range x.weights {
		total += w
	}
	at, m := x.some(total), 0
	for at >= x.weights[m] {
		at -= x.weights[m]
		m++
	}
	return &moves[m]
}

// act makes one move.
func (x *walk) act() {
	n := x.pick()
	if x.profile.name == "messages" {
		if n.off {
			return
		}
		if n.replica == nil {
			if x.some(10) == 0 {
				n.start()
			}
			return
		}
	}
	m := x.next()
	x.printf("--- %s", m.name)
	m.do(x, n)
	if most := min(5*x.profile.steps, 2000); len(x.net) > most {
		x.net = slices.Clone(x.net[most/2:])
	}
}

// run makes the moves of a profile until a law breaks, and ends all faults after them if heal is set. A broken law may also
// show as a panic of package invariant.
func (x *walk) run(heal bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("move %d: panic: %v", x.moved, p)
		}
	}()
	for ; x.moved < x.profile.steps && !x.broken(); x.moved++ {
		x.act()
		if x.profile.steps > 100 && x.moved%50 == 0 {
			x.laws.matching(x.cluster)
			x.laws.intersections(x.cluster)
		}
	}
	if x.profile.name == "strict" && x.lastLeader() != nil {
		x.give(x.lastLeader().id, x.members(100)...)
	}
	if !x.broken() {
		x.laws.same()
	}
	if !x.broken() && heal {
		if err := x.heal(); err != nil {
			return err
		}
		x.laws.same()
	}
	if x.broken() {
		return fmt.Errorf("move %d: %s", x.moved, x.laws.broken)
	}
	return nil
}

// heal ends all faults and lets the cluster converge: it must elect a leader, end every proposal and the change under way,
// apply all entries on all of its members, and hold no record for ever. Members that were removed for ever may be away.
func (x *walk) heal() error {
	clear(x.blocked)
	x.net = nil
	away := x.some(2) == 0
	for _, n := range x.nodes {
		if away {
			x.switchOff(n)
		}
		if n.off {
			continue
		}
		n.slowDisk, n.holdApply, n.slowReply = false, false, false
		if n.replica == nil {
			n.start()
		}
		n.sync(len(n.pending))
		n.reply()
		n.apply(len(n.toApply))
	}
	for range 40 {
		x.tick(10)
		if leader := x.leader(); leader != nil && leader.replica.Status().TermStarted {
			break
		}
	}
	x.tick(20)
	for range 3 {
		leader := x.leader()
		if leader == nil {
			return fmt.Errorf("no leader after all faults ended")
		}
		leader.step(raft.Propose{Proposals: append(slices.Clone(x.proposals), proposalOf(1<<20, "h=last"))})
		x.tick(30)
	}
	leader := x.leader()
	if leader == nil {
		return fmt.Errorf("the leader was lost without a fault")
	}
	for _, p := range x.proposals {
		if _, done := leader.store.keys.results[p.ID]; !done {
			return fmt.Errorf("%v never ends", p.ID)
		}
	}
	want := leader.replica.Status()
	if last := leader.rules(&raft.Status{Commit: want.LastIndex, Applied: want.LastIndex}); want.ConfigID != last || !want.ConfigSettled {
		return fmt.Errorf("the change %v never ends: config %v, settled %v", last, want.ConfigID, want.ConfigSettled)
	}
	for _, id := range want.Config.IDs() {
		n := x.node(id)
		if got := n.replica.Status(); got.Applied != want.LastIndex {
			return fmt.Errorf("member %v applied %d of %d", id, got.Applied, want.LastIndex)
		}
		if held := n.replica.FastCounts().Held; held > 0 || len(n.disk.records) > 8 {
			return fmt.Errorf("member %v holds %d proposals, on disk %d", id, held, len(n.disk.records))
		}
	}
	if err := x.yields(); err != nil || leader.c.opts(leader.id).Fast.Footprint == nil {
		return err
	}
	return x.healthy(want.Config.IDs())
}

// yields checks that a cordoned member does not keep leading once all others are up and have caught up, however often it tried
// to hand over before.
func (x *walk) yields() error {
	for range 150 {
		leader := x.leader()
		if leader == nil {
			return fmt.Errorf("the leader was lost in handing over")
		}
		if s := leader.replica.Status(); !s.Config.Cordoned(leader.id) {
			return nil
		}
		x.tick(10)
	}
	return fmt.Errorf("the cordoned member %v leads on", x.leader().id)
}

// healthy checks that, without faults, a proposal of a follower is decided in one round trip.
func (x *walk) healthy(ids []memberID) error {
	for _, id := range ids {
		n := x.node(id)
		if leader := x.leader(); n == leader {
			continue
		}
		p := x.draw(false)
		n.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
		x.settle()
		x.tick(1)
		if footprint := footprintOf(p.Payload); footprint.Barrier || !changes(p.Payload) {
			continue
		}
		if _, won := x.laws.wins[p.ID]; !won && !x.broken() {
			return fmt.Errorf("%v of member %v is not decided at once: %v", p.ID, id, n.replica.FastCounts())
		}
	}
	return nil
}

// counts adds up the fast path's counts of all members, since their last starts.
func (x *walk) counts() (sum raft.FastCounts) {
	for _, n := range x.alive() {
		c := n.replica.FastCounts()
		sum.Recovered += c.Recovered
		for why := range consensus.RefusedReasons {
			sum.Refused[why] += c.Refused[why]
		}
	}
	return sum
}

// replay prints the last part of a walk.
func replay(seed uint64, p *profile, without rules.Set, lines int, heal bool) string {
	x := newWalk(seed, p, without, nil)
	x.trace = &strings.Builder{}
	err := x.run(heal)
	all := strings.Split(x.trace.String(), "\n")
	return fmt.Sprintf("%s\n=> %v\n%s", strings.Join(all[max(0, len(all)-lines):], "\n"), err, x.dump())
}

// dump prints the state of all members.
func (x *walk) dump() string {
	var b strings.Builder
	for _, n := range x.nodes {
		if n.replica == nil {
			fmt.Fprintf(&b, "%v: down\n", n.id)
			continue
		}
		s := n.replica.Status()
		fmt.Fprintf(&b, "%v: %v term %d leader %v commit %d applied %d durable %d last %d config %v %s removed %v %+v\n", n.id, s.Role,
			s.Term, s.Leader, s.Commit, s.Applied, s.Durable, s.LastIndex, s.ConfigID, describeConfig(&s.Config), s.Removed, s.Progress)
	}
	return b.String()
}
