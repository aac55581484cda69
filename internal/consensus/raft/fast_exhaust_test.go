package raft_test

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// explorer tries every order in which messages can arrive, and every moment at which a member may campaign or crash, of a small
// scenario. A message that is never delivered is lost. A replica cannot be copied, so each schedule is played from the
// beginning. Two schedules are one if every member got the same inputs and shows the same state, and the same messages are
// under way.
type explorer struct {
	voters  int
	faults  rules.Set
	begin   func(x *schedule)
	events  []event // each may happen once, at any moment
	limit   int     // states
	visited map[uint64]bool
	states  int
	plays   int
	deepest int
	wins    int
	cut     bool
	broken  string
	how     []int
}

// event is an event other than the arrival of a message.
type event struct {
	name string
	at   memberID
	do   func(x *schedule)
}

// schedule is an order of events, under way.
type schedule struct {
	*cluster
	laws *fastLaws
	past []uint64 // the inputs of each member, in any order
	used []bool   // events
}

var exploreSeed = maphash.MakeSeed()

func (e *explorer) start() *schedule {
	var ids []memberID
	for id := range e.voters {
		ids = append(ids, memberID(id+1))
	}
	c := newCluster(ids, nil, func(o *raft.Options) {
		o.ElectionTicks, o.PreVote, o.CheckQuorum = 1000, false, false
		o.Fast.Footprint, o.Dropped = footprintOf, e.faults
	})
	x := &schedule{cluster: c, past: make([]uint64, e.voters), used: make([]bool, len(e.events))}
	x.laws = newFastLaws(c)
	c.elect(1)
	c.tick(1)
	e.begin(x)
	x.quiet()
	return x
}

// quiet completes the pending work of all members, delivers answers at once, where they matter most, and drops the messages
// that this exploration ignores.
func (x *schedule) quiet() {
	for answers := true; answers; {
		answers = false
		for _, n := range x.nodes {
			for n.drain() {
			}
		}
		net := x.net
		x.net = nil
		var keep []message
		for i := range net {
			switch m := &net[i]; m.Kind {
			case consensus.MsgRecord, consensus.MsgFastPropose, consensus.MsgVote, consensus.MsgAppend:
				keep = append(keep, *m)
			case consensus.MsgRecorded, consensus.MsgFast, consensus.MsgVoteReply, consensus.MsgAppendReply:
				x.deliver(*m)
				answers = true
			}
		}
		x.net = append(keep, x.net...)
	}
}

// give notes an input of a member.
func (x *schedule) give(id memberID, what []byte) {
	x.past[id-1] += maphash.Bytes(exploreSeed, what)
}

// state returns a hash of the inputs of all members, of their visible state and disks, and of the messages under way.
func (x *schedule) state() uint64 {
	var h maphash.Hash
	h.SetSeed(exploreSeed)
	say := func(numbers ...uint64) {
		for _, n := range numbers {
			for i := range 8 {
				_ = h.WriteByte(byte(n >> (8 * i)))
			}
		}
	}
	for i, n := range x.nodes {
		s := n.replica.Status()
		say(x.past[i], uint64(s.Role), uint64(s.Term), uint64(s.Vote), uint64(s.Leader), uint64(s.Commit), uint64(s.Applied))
		for i := range n.log {
			say(uint64(n.log[i].Term), n.log[i].ExactRevision, n.log[i].Proposal.Sequence)
		}
		for i := range n.disk.records {
			say(n.disk.records[i].Revision, n.disk.records[i].Proposal.Sequence)
		}
		for i := range s.Progress {
			say(uint64(s.Progress[i].Match), uint64(s.Progress[i].Next))
		}
	}
	net := uint64(len(x.laws.wins))
	for i := range x.net {
		net += maphash.Bytes(exploreSeed, consensus.AppendMessage(nil, &x.net[i]))
	}
	say(net)
	return h.Sum64()
}

// step makes the choice of a schedule: a message, or an event.
func (e *explorer) step(x *schedule, choice int) {
	if choice < len(x.net) {
		m := x.net[choice]
		x.net = append(x.net[:choice:choice], x.net[choice+1:]...)
		x.give(m.To, consensus.AppendMessage(nil, &m))
		x.deliver(m)
	} else {
		at := choice - len(x.net)
		for i := range e.events {
			if x.used[i] {
				continue
			}
			if at == 0 {
				x.used[i] = true
				x.give(e.events[i].at, []byte(e.events[i].name))
				e.events[i].do(x)
				break
			}
			at--
		}
	}
	x.quiet()
}

func (x *schedule) choices() int {
	n := len(x.net)
	for _, used := range x.used {
		if !used {
			n++
		}
	}
	return n
}

// explore continues the schedule to which path leads.
func (e *explorer) explore(x *schedule, path []int) {
	e.deepest = max(e.deepest, len(path))
	count := x.choices()
	for choice := range count {
		if e.broken != "" {
			return
		}
		if e.states >= e.limit {
			e.cut = true
			return
		}
		if x == nil {
			x = e.start()
			e.plays++
			for _, c := range path {
				e.step(x, c)
			}
		}
		e.step(x, choice)
		path := append(path[:len(path):len(path)], choice)
		if x.laws.broken != "" {
			e.broken, e.how = x.laws.broken, path
			return
		}
		if state := x.state(); !e.visited[state] {
			e.visited[state] = true
			e.states++
			e.wins += len(x.laws.wins)
			e.explore(x, path)
		}
		x = nil
	}
}

func (e *explorer) run() {
	e.visited = map[uint64]bool{}
	e.explore(e.start(), nil)
}

func proposes(name, on string, sequence uint64, via memberID) func(x *schedule) {
	return func(x *schedule) {
		p := proposalOf(sequence, on+"="+name)
		x.laws.invoke(p.ID)
		x.node(via).step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
	}
}

func campaign(id memberID) event {
	return event{"campaign", id, func(x *schedule) { x.node(id).step(raft.Campaign{}) }}
}

func fall(id memberID) event {
	return event{"fall", id, func(x *schedule) {
		x.node(id).crash()
		x.node(id).start()
	}}
}

// Ensure that no order of events of a small scenario breaks a law, and that some order does with a rule switched off.
func TestReplica_Step_fastExhaustive(t *testing.T) {
	one := proposes("P", "a", 1, 2)
	rivals := func(x *schedule) {
		proposes("P", "a", 1, 2)(x)
		proposes("Q", "a", 2, 3)(x)
	}
	apart := func(x *schedule) {
		proposes("P", "a", 1, 2)(x)
		proposes("Q", "b", 2, 2)(x)
	}
	for _, tc := range []struct {
		name   string
		voters int
		begin  func(x *schedule)
		events []event
		rules  string // the rules that are dropped: then a law breaks
		all    bool   // the scenario is small enough to explore it all
	}{
		{"one of two, an election", 2, one, []event{campaign(2)}, "", true},
		{"one of two, an election, a fall", 2, one, []event{campaign(2), fall(1)}, "", true},
		{"one", 3, one, nil, "", true},
		{"one, an election", 3, one, []event{campaign(2)}, "", true},
		{"one, an election, a fall", 3, one, []event{campaign(3), fall(1)}, "", false},
		{"rivals, an election", 3, rivals, []event{campaign(2)}, "", false},
		{"two keys, an election", 3, apart, []event{campaign(3)}, "", false},
		{"vote-without", 3, one, []event{campaign(2)}, "vote-without", false},
		{"recover-more", 3, one, []event{campaign(2)}, "recover-more", false},
		{"no keys", 3, rivals, []event{campaign(2)}, "witness-no-pool-keys witness-no-log-keys leader-no-log-keys", false},
	} {
		without, err := drop(strings.Fields(tc.rules)...)
		if err != nil {
			t.Fatal(err)
		}
		e := &explorer{voters: tc.voters, begin: tc.begin, events: tc.events, faults: without, limit: 2000}
		switch {
		case testing.Short():
			e.limit = 400
		case tc.all:
			e.limit = 100000
		}
		e.run()
		t.Logf("%-34s %d voters: %d states, %d plays, deepest %d, wins in %d, all: %t %s", tc.name, tc.voters, e.states, e.plays, e.deepest, e.wins, !e.cut, e.broken)
		if tc.all && e.cut && !testing.Short() {
			t.Errorf("%s: cut after %d states", tc.name, e.states)
		}
		if (e.broken != "") != (tc.rules != "") {
			t.Errorf("%s: broken %q after choices %v", tc.name, e.broken, e.how)
		}
	}
}
