package raft_test

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// An exploration of the real core by rounds, for four or five voters, which are too many for the explorer of single messages
// (fast_exhaust_test.go). One move is the effect of a few messages together: an election by a set of voters, a leader that
// brings one member in line, a restart with an older store, a candidate's question to one member, a read that asks some
// members, a proposal that some members receive, a change of members. All other messages of a move are lost. The exploration
// tries all sequences of moves, the shortest first; states that differ only in the names of members, but for the reader, are
// one. It compares what Status, logs, disks and stores show: two states that differ only in hidden fields of a replica, such as
// the index up to which its log is known to equal its leader's, are taken for one. That can lose a schedule and raises no false
// alarm.
//
// EXPLORE_SECONDS=600 explores for so many seconds; EXPLORE=name plays the scenarios whose names contain it.

// Two consecutive moves that touch no common member lead to the same state in either order: only one order is tried.

// roundMove is one move, and the members that it touches, a bit each.
type roundMove struct {
	name  string
	touch int
	do    func(x *story)
}

// redundant reports whether a move directly after another one is tried in the other order as well.
func (m *roundMove) redundant(before *roundMove) bool {
	return before != nil && m.touch&before.touch == 0 && m.touch != 0 && before.touch != 0 && m.name < before.name
}

func bit(ids ...memberID) (set int) {
	for _, id := range ids {
		set |= 1 << (id - 1)
	}
	return set
}

// scenario is the beginning of an exploration, and its moves.
type scenario struct {
	name    string
	voters  int
	begin   func(x *story)
	reader  memberID // one member reads; the others are interchangeable
	fast    int      // proposals, at most
	changes bool
	coarse  bool // a leader gives its log to its voters at once, and to no other member but the reader
	faults  rules.Set
	broken  string // the law that must break, or none
	depth   int    // of the search in go test, without EXPLORE_SECONDS
	quick   int    // the most states in go test
}

const exploreRead = 1 << 20

func (s *scenario) start(t *testing.T) *story {
	var ids []memberID
	for id := range s.voters {
		ids = append(ids, memberID(id+1))
	}
	c := newCluster(ids, nil, func(o *raft.Options) {
		o.ElectionTicks, o.PreVote, o.CheckQuorum, o.StrictReconfig = 1000, true, false, false
		o.MaxMessageBytes = 1
		o.Fast.Footprint, o.Dropped = footprintOf, s.faults
	})
	c.lossy, c.trace = true, nil
	x := &story{cluster: c, laws: newFastLaws(c)}
	c.elect(1)
	x.bring(1, ids[1:]...)
	s.begin(x)
	x.net = nil
	return x
}

// bring is give that stops when no message is left.
func (x *story) bring(leader memberID, to ...memberID) {
	for range 8 {
		x.passOnce(leader, to, func(*message) bool { return true })
		if x.even(leader, to) {
			return
		}
	}
}

// even reports whether members have the leader's log and commit index, and whether the leader knows it.
func (x *story) even(leader memberID, to []memberID) bool {
	l := x.node(leader)
	s := l.replica.Status()
	for _, p := range s.Progress {
		if n := x.node(p.ID); slices.Contains(to, p.ID) && (p.Match != s.LastIndex || n.replica.Status().Commit != s.Commit) {
			return false
		}
	}
	return true
}

// olderStore returns the store of a member as it was when it had applied entries up to index.
func (x *story) olderStore(n *node, index consensus.Index) store {
	s := x.laws.origin.clone()
	s.keys.dropped = &x.shell
	for at := s.position.Index + 1; at <= index; at++ {
		e := x.laws.committed[at]
		s.apply(&e)
	}
	return s
}

// moves returns the moves that are possible next.
func (s *scenario) moves(x *story) []roundMove {
	var all []roundMove
	add := func(touch int, name string, do func(x *story)) { all = append(all, roundMove{name, touch, do}) }
	for _, n := range x.nodes {
		id, status := n.id, n.replica.Status()
		if status.Role == raft.Leader {
			for _, to := range x.nodes {
				if to.id != id && (!s.coarse || to.id == s.reader) {
					add(bit(id, to.id), fmt.Sprintf("%v gives its log to %v", id, to.id), func(x *story) { x.bring(id, to.id) })
				}
			}
			if s.changes {
				add(0, fmt.Sprintf("%v removes 2", id), func(x *story) { x.change(id, consensus.ChangeRemove, consensus.Member{ID: 2}) })
			}
			if len(x.ids) < s.fast {
				add(0, fmt.Sprintf("%v logs a slow entry", id), func(x *story) { x.slow(fmt.Sprint("S", len(x.ids)), "f", id) })
			}
		}
		for set := range 1 << len(x.nodes) { // the least quorums that contain the candidate
			if set&bit(id) == 0 || bits.OnesCount(uint(set)) != len(x.nodes)/2+1 {
				continue
			}
			var votes []memberID
			for _, v := range x.nodes {
				if set&(1<<(v.id-1)) != 0 && v.id != id {
					votes = append(votes, v.id)
				}
			}
			if later := slices.ContainsFunc(votes, func(v memberID) bool { return x.node(v).replica.Term() > status.Term }); later || status.Role != raft.Leader {
				if !s.coarse {
					add(set, fmt.Sprintf("%v is elected by %v", id, votes), func(x *story) { x.elected(id, votes...) })
				}
				add(set, fmt.Sprintf("%v is elected by %v and gives them its log", id, votes), func(x *story) {
					if x.elected(id, votes...) {
						x.bring(id, votes...)
					}
				})
			}
		}
		if status.Role == raft.Leader {
			continue
		}
		for index := max(status.Applied, 3) - 2; index <= status.Applied; index++ {
			add(bit(id), fmt.Sprintf("%v restarts, applied up to %d", id, index), func(x *story) {
				n := x.node(id)
				n.flushed = x.olderStore(n, index)
				n.crash()
				n.start()
			})
		}
		for _, to := range x.nodes {
			if to.id != id && to.replica.Status().Role != raft.Leader {
				add(bit(id, to.id), fmt.Sprintf("%v asks %v for a pre-vote", id, to.id), func(x *story) { x.inquire(id, to.id) })
			}
		}
	}
	reader := x.node(s.reader)
	switch {
	case s.reader == consensus.NoMember || reader.replica.Leader() == s.reader || reader.replica.Leader() == consensus.NoMember:
	case len(x.laws.reads) == 0:
		for set := range 1 << len(x.nodes) {
			if set&bit(s.reader) != 0 || bits.OnesCount(uint(set)) != len(x.nodes)/2 {
				continue
			}
			add(0, fmt.Sprintf("%v reads and asks %v", s.reader, members(set)), func(x *story) { x.readFrom(s.reader, set) })
		}
	}
	if len(x.ids) < s.fast {
		for set := range 1 << len(x.nodes) {
			if bits.OnesCount(uint(set)) >= 3 {
				add(0, fmt.Sprintf("a fast proposal that %v hear", members(set)), func(x *story) {
					x.fast(fmt.Sprint("F", len(x.ids)), "e", x.nodes[len(x.nodes)-1].id, members(set)...)
				})
			}
		}
	}
	return all
}

func members(set int) []memberID {
	var ids []memberID
	for id := range 8 {
		if set&(1<<id) != 0 {
			ids = append(ids, memberID(id+1))
		}
	}
	return ids
}

// elected lets a member campaign once, after it learned later terms from its voters.
func (x *story) elected(id memberID, votes ...memberID) bool {
	if leadsNow(x.node(id)) {
		x.pass(id, votes, func(m *message) bool { m.Entries, m.Commit = nil, 0; return true })
	}
	return !leadsNow(x.node(id)) && x.campaigns(2, id, votes...)
}

// inquire lets a member ask one other for a pre-vote; the answer is lost.
func (x *story) inquire(id, to memberID) {
	x.node(id).step(raft.Campaign{})
	for _, m := range x.take(func(m *message) bool { return m.Kind == consensus.MsgPreVote && m.To == to }) {
		x.deliver(m)
	}
	x.rest()
}

// readFrom begins a read; the members in the set receive it, and their answers arrive, but for the leader's round.
func (x *story) readFrom(id memberID, set int) {
	x.laws.ask(x.node(id), exploreRead)
	x.node(id).step(raft.Read{IDs: []uint64{exploreRead}, Spread: true})
	for range 2 {
		for _, m := range x.take(isRead) {
			if m.Kind != consensus.MsgReadReply && (m.To == id || slices.Contains(members(set), m.To)) {
				x.deliver(m)
			}
		}
	}
	x.rest()
}

// rest ends a move: it completes the pending work, and drops all messages under way.
func (x *story) rest() {
	for _, n := range x.nodes {
		for n.drain() {
		}
	}
	x.net = nil
}

// state returns a hash of all that is visible, with members renamed by to.
func (x *story) state(to []uint64, seen []raft.Status) uint64 {
	var h maphash.Hash
	h.SetSeed(exploreSeed)
	say := func(numbers ...uint64) {
		for _, n := range numbers {
			for i := range 8 {
				_ = h.WriteByte(byte(n >> (8 * i)))
			}
		}
	}
	order := make([]int, len(x.nodes))
	for i := range x.nodes {
		order[to[i+1]-1] = i
	}
	for _, i := range order {
		n, s := x.nodes[i], &seen[i]
		say(uint64(s.Role), uint64(s.Term), to[s.Vote], to[s.Leader], uint64(s.Commit), uint64(s.Applied), uint64(len(n.log)), uint64(len(n.reads)))
		for i := range n.log {
			say(uint64(n.log[i].Term), uint64(n.log[i].Kind), n.log[i].ExactRevision, n.log[i].Proposal.Sequence, to[n.log[i].Answered])
		}
		say(uint64(len(n.disk.records)))
		for i := range n.disk.records {
			say(n.disk.records[i].Revision, n.disk.records[i].Proposal.Sequence, uint64(n.disk.records[i].Term))
		}
		var match uint64
		for _, p := range s.Progress {
			match += (uint64(p.Match)*31 + to[p.ID]) * 1_000_003
		}
		say(match)
	}
	say(uint64(len(x.laws.wins)), uint64(len(x.laws.reads)), uint64(len(x.laws.pending)))
	return h.Sum64()
}

// canonical returns the least hash over all renamings that keep the reader.
func (s *scenario) canonical(x *story) uint64 {
	least := ^uint64(0)
	var seen []raft.Status
	for _, n := range x.nodes {
		seen = append(seen, n.replica.Status())
	}
	to := make([]uint64, 128)
	var free []uint64
	for id := uint64(1); id <= uint64(s.voters); id++ {
		if to[id] = id; memberID(id) != s.reader && !(s.changes && id == 2) {
			free = append(free, id)
		}
	}
	names := slices.Clone(free)
	var permute func(k int)
	permute = func(k int) {
		if k == len(names) {
			for i, id := range free {
				to[id] = names[i]
			}
			least = min(least, x.state(to, seen))
			return
		}
		for i := k; i < len(names); i++ {
			names[k], names[i] = names[i], names[k]
			permute(k + 1)
			names[k], names[i] = names[i], names[k]
		}
	}
	permute(0)
	return least
}

// exploration is the result of an exploration.
type exploration struct {
	states, plays, depth int
	complete             bool // to that depth
	broken               string
	how                  []string
}

func (s *scenario) explore(t *testing.T, depth, states int, until time.Time) (e exploration) {
	type place struct {
		path []int
		last *roundMove
	}
	visited := map[uint64]bool{}
	level := []place{{}}
	play := func(path []int) (x *story, how []string) {
		x = s.start(t)
		e.plays++
		for _, choice := range path {
			moves := s.moves(x)
			how = append(how, moves[choice].name)
			moves[choice].do(x)
			x.rest()
		}
		return x, how
	}
	for e.depth = 0; e.depth < depth && len(level) > 0; e.depth++ {
		var next []place
		for _, at := range level {
			x, _ := play(at.path)
			moves := s.moves(x)
			for choice := range moves {
				if moves[choice].redundant(at.last) {
					continue
				}
				if e.states >= states || time.Now().After(until) {
					return e
				}
				path := append(at.path[:len(at.path):len(at.path)], choice)
				x, how := play(path)
				if x.laws.broken == "" {
					x.laws.matching(x.cluster)
				}
				if x.laws.broken != "" {
					e.broken, e.how = x.laws.broken, how
					e.depth++
					return e
				}
				if state := s.canonical(x); !visited[state] {
					visited[state] = true
					e.states++
					next = append(next, place{path, &moves[choice]})
				}
			}
		}
		level = next
	}
	e.complete = true
	return e
}

// recoveredElsewhere is the state in which a leader has recovered a write of the fast path, above entries of the leader before
// that only member 2 holds, and only 2 knows the leader's term. laterCommit begins with it.
func recoveredElsewhere(x *story) {
	x.slow("Y1", "c", 1)
	x.slow("Y2", "d", 1)
	x.giveUpTo(4, false, 1, 2)
	for at, name := range []string{"A", "B", "C", "D", "E", "F"} {
		x.fast(name, []string{"a", "b"}[at%2], 2, memberID(3+at/2))
	}
	x.fast("W", "e", 2, 1, 3, 4, 5)
	x.leads(3, 4, 5)
	x.tell(3, 2)
}

// led is a leader with one write that all have but the last member, which has not received it.
func led(x *story) {
	x.slow("K", "c", 1)
	for _, n := range x.nodes[1 : len(x.nodes)-1] {
		x.bring(1, n.id)
	}
}

// ledElsewhere continues from recoveredElsewhere: leader 1 of the next term has committed entries that members 4 and 5 hold
// with it.
func ledElsewhere(x *story) {
	recoveredElsewhere(x)
	x.bring(1, 5)
	x.leads(1, 4, 5)
	x.bring(1, 4, 5)
}

// readingElsewhere is recoveredElsewhere with a read at member 2, whose question the leader and members 4 and 5 have received
// and answered.
func readingElsewhere(x *story) {
	recoveredElsewhere(x)
	x.readFrom(2, bit(3, 4, 5))
}

func scenarios() []scenario {
	all := []scenario{
		{name: "four voters, proposals and reads", voters: 4, begin: led, reader: 2, fast: 3, coarse: true, depth: 3, quick: 100},
		{name: "five voters, proposals and reads", voters: 5, begin: led, reader: 2, fast: 3, coarse: true, depth: 3, quick: 100},
		{name: "four voters, a change", voters: 4, begin: led, reader: 3, fast: 2, changes: true, coarse: true, depth: 3, quick: 100},
		{name: "five voters, a recovered write", voters: 5, begin: recoveredElsewhere, reader: 2, depth: 6, quick: 100},
		{name: "five voters, a read under way", voters: 5, begin: readingElsewhere, reader: 2, depth: 6, quick: 100},
	}
	for _, f := range []scenario{
		{name: "the leader's index is believed", begin: readingElsewhere, faults: rules.Set{rules.ReadLeaderIndex: true}, broken: "L6"},
		{name: "entries below the commit index are skipped", begin: ledElsewhere, faults: rules.Set{rules.SkipBelowCommit: true},
			broken: "one log per leader"},
	} {
		f.voters, f.reader, f.coarse, f.depth, f.quick = 5, 2, true, 8, 0 // only with EXPLORE_SECONDS
		all = append(all, f)
	}
	return all
}

// Ensure that no sequence of moves breaks a law, to the depth that is printed, and that some does with a rule switched off.
func TestReplica_Step_explore(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("EXPLORE_SECONDS"))
	for _, s := range scenarios() {
		if !strings.Contains(s.name, os.Getenv("EXPLORE")) || (seconds == 0 && s.quick == 0) {
			continue
		}
		depth, states, patience := s.depth, s.quick, time.Hour
		if seconds > 0 {
			depth, states, patience = 20, 1<<30, time.Duration(seconds)*time.Second
		} else if testing.Short() {
			states /= 5
		}
		t.Run(s.name, func(t *testing.T) {
			begun := time.Now()
			e := s.explore(t, depth, states, begun.Add(patience))
			t.Logf("%-45s depth %d, complete %t: %d states, %d plays, %.1fs %s %s", s.name, e.depth, e.complete, e.states, e.plays,
				time.Since(begun).Seconds(), e.broken, strings.Join(e.how, "; "))
			if !strings.HasPrefix(e.broken, s.broken) || (e.broken == "") != (s.broken == "") {
				t.Errorf("%s: broken %q by %q, want %q", s.name, e.broken, e.how, s.broken)
			}
		})
	}
}
