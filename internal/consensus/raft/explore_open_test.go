package raft_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// An exploration of the ways in which proposers can close the fast path to others, with the real core and three voters. It
// tries all sequences of a few moves of proposers without sessions, of proposers that are gone or greedy, and of sessions that
// end while no member applies. After each sequence it checks whether the fast path is open to an uninvolved proposer, and
// whether all records go once the network is well. Laws:
//
//	open      half an election timeout later, of three proposals on unused keys one succeeds on the fast path
//	room      no voter refuses them because records of others take its room
//	held      twenty election timeouts later no member holds a record
//	given up  a proposal that its proposer repeats every three timeouts is executed

// openMove is one move. Messages that it does not deliver are lost.
type openMove struct {
	name string
	do   func(c *cluster) string // returns the law that the move itself broke
}

// openRule is a rule that can be dropped, and the law that breaks then.
type openRule struct {
	name  string
	adapt func(o *raft.Options)
	moves []openMove
	depth int    // of the search in go test
	room  bool   // only the law of room is checked
	law   string // the law that breaks; empty if none does
}

// strange is the number of a session that was never opened; an abort leaves no result for it, as in kv/apply.
const strange = 66

func by(owner memberID, session, sequence uint64, command string) consensus.Proposal {
	p := proposalOf(sequence, command)
	p.ID.Session = consensus.SessionID{Member: owner, Number: session}
	return p
}

func openCluster(adapt func(o *raft.Options)) *cluster {
	c := newFastCluster(func(o *raft.Options) { o.Fast.Revises = changes; adapt(o) })
	opts := c.opts
	c.opts = func(id memberID) raft.Options {
		o := opts(id)
		state := o.Fast.State
		o.Fast.State = func(asked consensus.ProposalID) fast.ProposalState {
			if asked.Session.Number == strange {
				return fast.ProposalNoSession
			}
			return state(asked)
		}
		return o
	}
	for _, n := range c.nodes {
		n.crash()
		n.start()
	}
	c.elect(1)
	c.tick(1)
	c.nextSeq = 100
	return c
}

// next is a number that no proposal of the cluster has.
func (c *cluster) next() uint64 {
	c.nextSeq++
	return c.nextSeq
}

func (c *cluster) follower() *node {
	for _, n := range c.nodes {
		if n.replica.Status().Role != raft.Leader {
			return n
		}
	}
	return nil
}

// toVoters offers proposals to the followers, and not to the leader.
func (c *cluster) toVoters(proposals ...consensus.Proposal) string {
	for _, n := range c.nodes {
		if n.replica.Status().Role != raft.Leader {
			n.offered(consensus.MsgRecord, proposals...)
		}
	}
	return ""
}

func (c *cluster) toLeader(p consensus.Proposal) string {
	if leader := c.leader(); leader != nil {
		leader.offered(consensus.MsgFastPropose, p)
	}
	c.net = nil
	return ""
}

// deposed lets a follower lead with the vote of the other one; entries that only the old leader has are lost.
func deposed(c *cluster) string {
	old := c.leader()
	if old == nil {
		return ""
	}
	heir := c.follower()
	c.isolate(old.id, true)
	for range 5 {
		heir.step(raft.Campaign{})
		c.settle()
	}
	c.isolate(old.id, false)
	c.tick(1)
	return ""
}

// askedAgain is a proposal that does not reach the leader until its proposer repeats it, after three and a half timeouts.
func askedAgain(c *cluster) string {
	p := by(97, 1, c.next(), "g=1")
	c.toVoters(p)
	c.tick(35)
	leader := c.leader()
	if leader == nil {
		return ""
	}
	leader.step(raft.Propose{Proposals: []consensus.Proposal{p}})
	c.tick(3)
	if leader.holdApply {
		return ""
	}
	if done := leader.store.keys.results[p.ID]; done.aborted {
		return "given up: a proposal was aborted while its proposer asked for it"
	}
	return ""
}

// slowly logs commands that no member, or only the leader, applies for the moment.
func slowly(c *cluster, all bool, commands ...string) string {
	leader := c.leader()
	if leader == nil {
		return ""
	}
	for _, n := range c.nodes {
		n.holdApply = n.holdApply || all || n == leader
	}
	c.propose(leader.id, commands...)
	c.settle()
	c.tick(1)
	return ""
}

var openMoves = []openMove{
	{"a proposal without a session reaches the leader", func(c *cluster) string {
		return c.toLeader(by(96, strange, c.next(), "a=1"))
	}},
	{"a proposal without a session reaches the voters", func(c *cluster) string {
		return c.toVoters(by(96, strange, c.next(), "a=1"))
	}},
	{"a proposal over all keys reaches the voters, and not the leader", func(c *cluster) string {
		return c.toVoters(by(95, 1, c.next(), "%=1"))
	}},
	{"a proposal on one key reaches the voters, and not the leader", func(c *cluster) string {
		return c.toVoters(by(95, 1, c.next(), "b=1"))
	}},
	{"another leader is elected", deposed},
	{"sessions end, and nobody applies it yet", func(c *cluster) string { return slowly(c, true, "$94=1") }},
	{"reads are logged, and the leader alone has not applied them", func(c *cluster) string {
		return slowly(c, false, "~b=1", "~b=2")
	}},
	{"a proposer asks again", askedAgain},
	{"two election timeouts pass", func(c *cluster) string { c.tick(20); return "" }},
}

// greedy offers more records than one proposer may keep, and more than a voter keeps at all. Those that it may keep promise
// revisions that the leader does not reach for long: voters have room for others, and yet the fast path is closed to all until
// those records go, or as many writes have come. So only the law of room is checked here.
var greedy = []openMove{{"one proposer offers 4,100 records to the voters", func(c *cluster) string {
	many := make([]consensus.Proposal, 0, 4100)
	for range 4100 {
		many = append(many, by(95, 1, c.next(), "-=1"))
	}
	return c.toVoters(many...)
}}}

// openToOthers offers proposals of an uninvolved proposer.
func (c *cluster) openToOthers() string {
	c.tick(6)
	via := c.follower()
	if c.leader() == nil || via == nil {
		return ""
	}
	before := via.replica.FastCounts()
	for i := range 3 {
		p := by(98, 1, c.next(), allKeys[4+i:5+i]+"=1")
		via.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
		c.settle()
	}
	after := via.replica.FastCounts()
	switch {
	case after.Decided > before.Decided:
		return ""
	case after.Refused[consensus.RefusedFull] > before.Refused[consensus.RefusedFull]:
		return "room: the records of one proposer leave none for another"
	}
	return fmt.Sprintf("open: none of three proposals succeeded on the fast path (refused: %v)", after.Refused)
}

// calm lets all members apply, and time pass.
func (c *cluster) calm() string {
	for _, n := range c.nodes {
		n.holdApply = false
		n.apply(len(n.toApply))
	}
	c.settle()
	c.tick(200)
	for _, n := range c.nodes {
		if held := n.replica.FastCounts().Held; held > 0 {
			return fmt.Sprintf("held: %d records on member %v, twenty election timeouts later", held, n.id)
		}
	}
	return ""
}

// explore tries all sequences of moves up to a depth, the shortest first.
func (r *openRule) explore() (broken string, how []string, plays int) {
	level := [][]int{nil}
	for len(level[0]) < r.depth {
		var next [][]int
		for _, path := range level {
			for m := range r.moves {
				path := append(slices.Clone(path), m)
				next = append(next, path)
				plays++
				if broken := r.play(path); broken != "" {
					for _, at := range path {
						how = append(how, r.moves[at].name)
					}
					return broken, how, plays
				}
			}
		}
		level = next
	}
	return "", nil, plays
}

func (r *openRule) play(path []int) string {
	c := openCluster(r.adapt)
	for _, at := range path {
		if broken := r.moves[at].do(c); broken != "" {
			return broken
		}
	}
	broken := c.openToOthers()
	switch {
	case r.room && strings.HasPrefix(broken, "room"):
		return broken
	case r.room:
		return ""
	case broken != "":
		return broken
	}
	return c.calm()
}

// Ensure that no proposer closes the fast path to others, and that the laws break with a rule dropped.
func TestReplica_Step_exploreOpen(t *testing.T) {
	deep := 2
	if os.Getenv("EXPLORE_SECONDS") != "" {
		deep = 3
	}
	for _, r := range []openRule{
		{name: "every rule", adapt: func(*raft.Options) {}, moves: openMoves, depth: deep},
		{name: "every rule, greedy", adapt: func(*raft.Options) {}, moves: greedy, depth: 1, room: true},
		{name: "answer-unopened", adapt: func(o *raft.Options) { o.Dropped[rules.AnswerUnopened] = true },
			moves: openMoves, depth: 3, law: "held"},
		{name: "any-width", adapt: func(o *raft.Options) { o.Dropped[rules.AnyWidth] = true }, moves: openMoves, depth: 3, law: "open"},
		{name: "no-shares", adapt: func(o *raft.Options) { o.Dropped[rules.NoShares] = true }, moves: greedy, depth: 1,
			room: true, law: "room"},
		{name: "sessions-meet-all", adapt: func(o *raft.Options) { o.Dropped[rules.SessionsMeetAll] = true }, moves: openMoves,
			depth: 3, law: "open"},
		{name: "what takes no revision counts", adapt: func(o *raft.Options) { o.Fast.Revises = nil }, moves: openMoves,
			depth: 3, law: "open"},
		{name: "hasty-orphans", adapt: func(o *raft.Options) { o.Dropped[rules.HastyOrphans] = true }, moves: openMoves, depth: 3,
			law: "given up"},
	} {
		t.Run(r.name, func(t *testing.T) {
			begun := time.Now()
			broken, how, plays := r.explore()
			t.Logf("depth %d, %d plays, %.1fs: %s %q", r.depth, plays, time.Since(begun).Seconds(), broken, how)
			if law, _, _ := strings.Cut(broken, ":"); law != r.law {
				t.Errorf("broken %q by %q, want %q", broken, how, r.law)
			}
		})
	}
}
