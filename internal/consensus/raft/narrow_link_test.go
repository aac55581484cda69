package raft_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// narrowLink is a link from one member to another, which carries some bytes of entries a tick. Appends wait for those before
// them; heartbeats overtake them, as they do in package transport.
type narrowLink struct {
	c        *cluster
	from, to memberID
	perTick  int
	room     int // of the ticks so far, not used yet
	queue    []message
	queued   int
	bytes    int // of entries that the sender put on the link
	loses    func(*message) bool
}

func entryBytes(m *message) int {
	n := 0
	for i := range m.Entries {
		n += m.Entries[i].SizeBytes()
	}
	return n
}

// tick lets time pass for all members and on the link.
func (l *narrowLink) tick() {
	for _, n := range l.c.nodes {
		n.step(raft.Tick{})
	}
	if l.room += l.perTick; len(l.queue) == 0 {
		l.room = l.perTick
	}
	l.settle()
}

// settle delivers all messages that can be delivered now.
func (l *narrowLink) settle() {
	for moved := true; moved; {
		moved = l.arrive()
		for _, n := range l.c.nodes {
			moved = n.drain() || moved
		}
		net := l.c.net
		l.c.net = nil
		for i := range net {
			moved = true
			if m := &net[i]; m.Kind != consensus.MsgAppend || m.From != l.from || m.To != l.to {
				l.c.deliver(*m)
				continue
			}
			if l.c.blocked[[2]memberID{l.from, l.to}] {
				continue
			}
			l.bytes += entryBytes(&net[i])
			if l.loses == nil || !l.loses(&net[i]) {
				l.queue, l.queued = append(l.queue, net[i]), l.queued+entryBytes(&net[i])
			}
		}
	}
}

func (l *narrowLink) arrive() bool {
	moved := false
	for len(l.queue) > 0 && l.room >= entryBytes(&l.queue[0]) {
		m := l.queue[0]
		l.queue, l.queued, l.room = l.queue[1:], l.queued-entryBytes(&m), l.room-entryBytes(&m)
		l.c.deliver(m)
		moved = true
	}
	return moved
}

// breaks loses the messages on the link, and reports the broken connection to the sender if told is set.
func (l *narrowLink) breaks(told bool) (lost int) {
	lost = l.queued
	l.queue, l.queued = nil, 0
	if told {
		l.c.node(l.from).step(raft.Unreachable{Member: l.to})
	}
	return lost
}

const (
	narrowBacklog = 2 << 20
	narrowEntry   = 8 << 10
	narrowMessage = 128 << 10
	narrowPerTick = 5 << 10
)

// lagging returns a leader, member 1, and the link to a voter that lacks narrowBacklog.
func lagging(adapt func(*raft.Options)) *narrowLink {
	c := newCluster([]memberID{1, 2, 3}, nil, func(o *raft.Options) {
		o.ElectionTicks, o.HeartbeatTicks = 100, 10
		o.MaxMessageBytes = narrowMessage
		if adapt != nil {
			adapt(o)
		}
	})
	c.elect(1)
	c.isolate(3, true)
	for range narrowBacklog / narrowEntry {
		c.propose(1, string(make([]byte, narrowEntry)))
	}
	c.settle()
	c.isolate(3, false)
	return &narrowLink{c: c, from: 1, to: 3, perTick: narrowPerTick}
}

// catchUp runs until the member has all entries, and calls each between two ticks.
func (l *narrowLink) catchUp(t *testing.T, each func(ticks int)) {
	t.Helper()
	const most = 10 * narrowBacklog / narrowPerTick
	for ticks := range most {
		if last := l.c.node(l.from).replica.Status().LastIndex; l.c.node(l.to).replica.Status().LastIndex == last && len(l.queue) == 0 {
			return
		}
		if each != nil {
			each(ticks)
		}
		l.tick()
	}
	t.Fatalf("after %d ticks the member has %d entries and lacks some", most, l.c.node(l.to).replica.Status().LastIndex)
}

// Ensure that no entry is sent twice where none is lost, however often heartbeats overtake entries.
func TestReplica_Step_narrowLink(t *testing.T) {
	for _, row := range []struct {
		name  string
		adapt func(*raft.Options)
	}{
		{"with the usual window", nil},
		{"with a window of two messages", func(o *raft.Options) { o.MaxInflightMessages = 2 }},
		{"with small messages", func(o *raft.Options) { o.MaxMessageBytes = 1 }},
		{"with a lease", func(o *raft.Options) { o.LeaderLease = true }},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := lagging(row.adapt)
			term := l.c.node(1).replica.Status().Term
			l.catchUp(t, nil)
			if most := narrowBacklog + narrowBacklog/50; l.bytes > most {
				t.Errorf("%d bytes of entries were put on the way, want %d at most", l.bytes, most)
			}
			if got := l.c.node(1).replica.Status().Term; got != term {
				t.Errorf("term %d has become %d", term, got)
			}
		})
	}
}

// Ensure that no entry is sent twice because a leader takes proposals all the time while a member catches up, and that its
// heartbeats overtake then, too.
func TestReplica_Step_narrowLinkUnderLoad(t *testing.T) {
	l := lagging(nil)
	heard := 0
	l.c.check = func(n *node, out *raft.Output) {
		for i := range out.Send {
			if out.Send[i].Kind == consensus.MsgHeartbeat && out.Send[i].To == 3 {
				heard++
			}
		}
	}
	more, ticks := 0, 0
	l.catchUp(t, func(at int) {
		if ticks = at; at < 200 {
			l.c.propose(1, string(make([]byte, 1024)))
			more += 1024 + 64 // and the overhead of an entry
		}
	})
	if most := narrowBacklog + narrowBacklog/50 + more; l.bytes > most {
		t.Errorf("%d bytes of entries were put on the way, want %d at most", l.bytes, most)
	}
	if least := ticks/10 - 1; heard < least {
		t.Errorf("%d heartbeats in %d ticks, want one in 10", heard, ticks)
	}
}

// Ensure that a lost entry is sent again, once, whether the leader learns of the loss or not.
func TestReplica_Step_narrowLinkLoses(t *testing.T) {
	for _, row := range []struct {
		name string
		at   int // tick
		lose func(*narrowLink) (lost int)
	}{
		{"a connection that breaks", 100, func(l *narrowLink) int { return l.breaks(true) }},
		{"a connection that breaks, unnoticed", 100, func(l *narrowLink) int { return l.breaks(false) }},
		{"a connection that breaks before anything was acknowledged", 1, func(l *narrowLink) int { return l.breaks(true) }},
		{"another stream that breaks", 100, func(l *narrowLink) int {
			l.c.node(1).step(raft.Unreachable{Member: 3}) // the entries are still on the link
			return 0
		}},
		{"a member that starts again", 100, func(l *narrowLink) int {
			lost := l.breaks(true)
			l.c.node(3).crash()
			l.c.node(3).start()
			return lost
		}},
		{"one message, dropped by a full queue", 1, func(l *narrowLink) int {
			first := true
			l.loses = func(m *message) bool {
				lose := first && len(m.Entries) > 0
				first = first && !lose
				return lose
			}
			return l.c.opts(1).MaxInflightBytes // the entries sent after it are useless
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := lagging(nil)
			lost := 0
			l.catchUp(t, func(at int) {
				if at == row.at {
					lost = row.lose(l)
				}
			})
			if most := narrowBacklog + narrowBacklog/50 + lost; l.bytes > most {
				t.Errorf("%d bytes of entries were put on the way, of which %d were lost; want %d at most", l.bytes, lost, most)
			}
		})
	}
}

// Ensure that a loss at the end of a stream, after which no entry is sent, is found by the next heartbeat.
func TestReplica_Step_lastEntryLost(t *testing.T) {
	l := lagging(nil)
	l.catchUp(t, nil)
	first := true
	l.loses = func(m *message) bool {
		lose := first && len(m.Entries) > 0
		first = first && !lose
		return lose
	}
	l.c.propose(1, "last")
	l.settle()
	for range 2 * l.c.opts(1).HeartbeatTicks {
		l.tick()
	}
	if got, want := l.c.node(3).replica.Status().LastIndex, l.c.node(1).replica.Status().LastIndex; first || got != want {
		t.Errorf("the member has %d entries of %d", got, want)
	}
}

// Ensure that a follower that takes no entries for now, because too much waits to be applied, does not get them again and
// again.
func TestReplica_Step_narrowLinkToFullMember(t *testing.T) {
	l := lagging(func(o *raft.Options) {
		o.MaxInflightBytes = narrowMessage
		if o.ID == 3 {
			o.MaxUnappliedBytes, o.MaxApplyingBytes = narrowBacklog/4, narrowMessage
		}
	})
	n := l.c.node(3)
	n.holdApply = true
	for range 1000 {
		l.tick()
	}
	if most := narrowBacklog/4 + 6*narrowMessage; l.bytes > most {
		t.Errorf("%d bytes of entries were put on the way, want %d at most", l.bytes, most)
	}
	n.holdApply = false
	n.apply(len(n.toApply))
	l.catchUp(t, nil)
}

// Ensure that a new leader sends its first entries once to a follower from which it has no message yet. The acknowledgement of
// the first probe, which bore no entries, comes after the second one has left with some: it does not answer that one.
func TestReplica_Step_newLeaderSendsOnce(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	follower, sent := c.node(3), 0
	var slow []message // appends on their way to member 3
	c.node(2).step(raft.Campaign{})
	for range 20 * c.opts(2).HeartbeatTicks {
		c.node(2).step(raft.Tick{})
		if sent > 0 && len(slow) > 0 {
			c.deliver(slow[0])
			slow = slow[1:]
		}
		for moved := true; moved; {
			moved = false
			for _, n := range c.nodes {
				moved = n.drain() || moved
			}
			net := c.net
			c.net = nil
			for i := range net {
				moved = true
				switch m := &net[i]; {
				case m.Kind == consensus.MsgVoteReply && m.From == 3: // lost: the leader has no message of it
				case m.Kind == consensus.MsgAppend && m.To == 3:
					sent += len(m.Entries)
					slow = append(slow, *m)
				default:
					c.deliver(*m)
				}
			}
		}
	}
	leader := c.node(2).replica.Status()
	if leader.Role != raft.Leader || follower.replica.Status().LastIndex != leader.LastIndex {
		t.Fatalf("member 2 is %+v, member 3 has %d entries", leader, follower.replica.Status().LastIndex)
	}
	if sent != 1 {
		t.Errorf("%d entries were sent to member 3, which lacked 1", sent)
	}
}

// Ensure that the answer to an append without entries does not pass for the answer to one with entries that left after it:
// those entries would be sent again.
func TestReplica_Step_probeIsAnsweredByItself(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	var asked consensus.Message // the last append without entries to member 3
	sent := 0
	c.check = func(n *node, out *raft.Output) {
		for i := range out.Send {
			if m := &out.Send[i]; n.id == 2 && m.To == 3 && m.Kind == consensus.MsgAppend {
				if sent += len(m.Entries); len(m.Entries) == 0 {
					asked = *m
				}
			}
		}
	}
	c.isolate(3, true)
	c.elect(2)
	c.tick(3*c.opts(2).HeartbeatTicks, 2)
	c.settle()
	if sent > 0 || asked.Round == 0 {
		t.Fatalf("%d entries were sent to a member that was never heard, after %+v", sent, asked)
	}
	answer := func(kind consensus.MessageKind, match consensus.Position) consensus.Message {
		return consensus.Message{Kind: kind, From: 3, To: 2, Term: asked.Term, Match: match, Round: asked.Round}
	}
	refusal := answer(consensus.MsgAppendReply, consensus.Position{})
	refusal.Reject, refusal.Refused = true, asked.Prev
	// It has refused an earlier append, and by now has the entries that it lacked.
	c.node(2).step(raft.Receive{Message: refusal}, raft.Receive{Message: answer(consensus.MsgHeartbeatReply, asked.Prev)})
	c.settle()
	first := sent
	c.node(2).step(raft.Receive{Message: answer(consensus.MsgAppendReply, asked.Prev)})
	c.settle()
	if status := c.node(2).replica.Status(); first == 0 || sent > first || status.LastIndex != asked.Prev.Index+consensus.Index(first) {
		t.Errorf("%d entries were sent, and %d after the answer to the append before them; the log ends at %d, and that append "+
			"was after %d", first, sent-first, status.LastIndex, asked.Prev.Index)
	}
}

// Ensure that an append follows a heartbeat while entries are under way, and that none does otherwise.
func TestReplica_Step_heartbeatAsks(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(1)
	c.propose(1, "a")
	c.settle()
	var heartbeats, appends int
	c.check = func(n *node, out *raft.Output) {
		for i := range out.Send {
			switch m := &out.Send[i]; {
			case m.To != 3:
			case m.Kind == consensus.MsgHeartbeat:
				heartbeats++
			case m.Kind == consensus.MsgAppend:
				appends++
			}
		}
	}
	for range 30 {
		c.tick(1)
		c.settle()
	}
	if heartbeats == 0 || appends != 0 {
		t.Errorf("nothing is on its way: %d heartbeats, %d appends", heartbeats, appends)
	}
	c.isolate(3, true)
	c.propose(1, "b") // may be under way, as far as the leader knows
	c.settle()
	heartbeats, appends = 0, 0
	c.tick(c.opts(1).HeartbeatTicks, 1)
	if heartbeats == 0 || appends != heartbeats {
		t.Errorf("an entry is on its way: %d heartbeats, %d appends", heartbeats, appends)
	}
}

// Ensure that a follower that starts again, whose answers were lost, and then an append, does not get its own entries again.
func TestReplica_Step_lossAfterLostAnswers(t *testing.T) {
	c := newCluster([]memberID{1, 2, 3}, nil, nil)
	c.elect(2)
	c.settle()
	sent := map[consensus.Index]int{}
	c.check = func(n *node, out *raft.Output) {
		for i := range out.Send {
			if m := &out.Send[i]; n.id == 2 && m.To == 3 && m.Kind == consensus.MsgAppend {
				for _, e := range m.Entries {
					sent[e.Index]++
				}
			}
		}
	}
	first := c.node(2).replica.Status().LastIndex + 1
	c.propose(2, "a", "b", "c")
	c.deliverOnly(func(m *message) bool { return m.From != 3 })
	c.propose(2, "lost")
	c.deliverOnly(func(m *message) bool { return m.From != 3 && m.To != 3 })
	c.node(3).crash()
	c.node(3).start() // it no longer knows that its entries are its leader's
	c.propose(2, "last")
	c.settle()
	c.tick(2*c.opts(2).HeartbeatTicks, 2)
	c.settle()
	got, last := c.node(3).replica.Status().LastIndex, c.node(2).replica.Status().LastIndex
	if last != first+4 || got != last {
		t.Fatalf("the follower has %d entries of %d", got, last)
	}
	for index := first; index <= last; index++ {
		if lost := index >= first+3; sent[index] != 1 && !lost || lost && sent[index] != 2 {
			t.Errorf("entry %d was sent %d times", index, sent[index])
		}
	}
}
