package raft_test

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// move is a possible next event of a walk. n is a member, drawn at random.
type move struct {
	name string
	do   func(x *walk, n *node)
}

// moves is the table of all moves. A profile says which of them a walk draws.
var moves = slices.Concat(messageMoves, strictMoves, proposalMoves, leaderMoves, worldMoves)

func moveOf(name string) int {
	at := slices.IndexFunc(moves, func(m move) bool { return m.name == name })
	if at < 0 {
		panic("no move " + name)
	}
	return at
}

// messageMoves are single messages and single steps of a member.
var messageMoves = []move{
	{"deliver", func(x *walk, _ *node) { x.deliverOne() }},
	{"settle", func(x *walk, _ *node) { x.settle() }},
	{"drain", func(_ *walk, n *node) { n.drain() }},
	{"sync", func(x *walk, n *node) {
		if len(n.pending) > 0 {
			n.sync(1 + x.some(len(n.pending)))
		}
	}},
	{"tick-one", func(x *walk, n *node) { // clocks run at one speed if a lease depends on that
		if !x.lease {
			n.step(raft.Tick{})
		} else if x.some(len(x.nodes)) == 0 {
			for _, n := range x.nodes {
				n.step(raft.Tick{})
			}
		}
	}},
	{"apply-some", func(x *walk, n *node) { n.apply(1 + x.some(len(n.toApply)+1)) }},
	{"say", func(x *walk, n *node) { x.propose(n.id, "c"+strconv.FormatUint(x.nextSeq, 10)) }},
	{"read", func(x *walk, n *node) {
		x.readID++
		x.laws.ask(n, x.readID)
		n.step(raft.Read{IDs: []uint64{x.readID}, Spread: x.infer})
	}},
	{"slow-disk", func(_ *walk, n *node) { n.slowDisk = !n.slowDisk }},
	{"quick-disk", func(_ *walk, n *node) { n.slowDisk = false; n.sync(len(n.pending)) }},
	{"hold-apply", func(_ *walk, n *node) { n.holdApply = !n.holdApply }},
	{"flush", func(_ *walk, n *node) { n.flush() }},
	{"campaign", func(_ *walk, n *node) { n.step(raft.Campaign{}) }},
	{"unreachable", func(x *walk, n *node) { n.step(raft.Unreachable{Member: x.pick().id}) }},
	{"partition", func(x *walk, _ *node) { x.partition() }},
	{"reconfigure", func(x *walk, n *node) { x.reconfigure(n) }},
	{"switch-off", func(x *walk, n *node) { x.switchOff(n) }},
}

// strictMoves are the lines of stories.
var strictMoves = []move{
	{"hear", func(x *walk, n *node) { x.hear(n, 93) }},
	{"hear-some", func(x *walk, n *node) { x.hear(n, []int{30, 50}[x.some(2)]) }}, // and maybe the leader, too
	{"reign", func(x *walk, n *node) { x.reign(n.id) }},
	{"log", strictly(func(x *walk, l *node) { name, on := x.named(); x.slow(name, on, l.id) })},
	{"tell", strictly(func(x *walk, l *node) { x.tell(l.id, x.members(60)...) })},
	{"give", strictly(func(x *walk, l *node) { x.give(l.id, x.members(50)...) })},
	{"give-up-to", strictly(func(x *walk, l *node) {
		back := consensus.Index(x.some(4))
		x.giveUpTo(l.last()-min(back, l.last()-1), x.some(2) == 0, l.id, x.members(40)...)
	})},
	{"fall", strictly(func(x *walk, _ *node) { x.falls(x.pick().id) })},
}

// strictly makes a move of the latest leader, if there is one.
func strictly(do func(x *walk, leader *node)) func(x *walk, n *node) {
	return func(x *walk, _ *node) {
		if leader := x.lastLeader(); leader != nil {
			do(x, leader)
		}
	}
}

// proposalMoves are actions of clients.
var proposalMoves = []move{
	{"fast", func(x *walk, _ *node) { x.offer(x.draw(x.pct(15)), x.drop/2, x.lose) }},
	{"fast-lossy", func(x *walk, _ *node) { x.offer(x.draw(x.pct(15)), 55, 10) }},  // about half of the records are lost
	{"orphan", func(x *walk, _ *node) { x.offer(x.draw(x.pct(15)), x.drop, 100) }}, // the leader never receives it
	{"alone", func(x *walk, _ *node) { x.offer(x.draw(x.pct(15)), 100, 0) }},       // no other member does
	{"drowse", func(x *walk, _ *node) { x.drowse() }},                              // disks may be slower than answers
	{"slow", func(x *walk, _ *node) { x.toLeader(x.draw(x.pct(30))) }},             // to the leader alone
	{"retry", func(x *walk, _ *node) { // through any member, fast or slow
		if p := x.draw(true); x.pct(75) {
			x.offer(p, x.drop/2, x.lose)
		} else {
			x.toLeader(p)
		}
	}},
	{"ask", func(x *walk, n *node) { x.ask(n) }},
	{"change", func(x *walk, _ *node) { x.changeMembers() }},
	{"change-round", func(x *walk, _ *node) { // with a part of the replication that it takes
		x.changeMembers()
		x.spread([]int{20, 50, 80}[x.some(3)])
	}},
}

// leaderMoves are elections, and actions of a leader.
var leaderMoves = []move{
	{"elect", func(x *walk, n *node) { x.vote(n) }},
	{"transfer", func(x *walk, n *node) {
		n.step(raft.Transfer{To: x.pick().id})
		if x.profile.name != "messages" {
			x.exchange(4, x.drop, func(m *message) bool { return !isFast(m) })
		}
	}},
	{"touch", leading(func(x *walk, l *node) { // it makes its term known, not its entries
		l.step(raft.Tick{})
		x.exchange(1, x.drop, func(m *message) bool { return m.From == l.id && isLog(m) && len(m.Entries) == 0 })
	})},
	{"partial", leading(func(x *walk, l *node) { x.feed(l, x.pick(), x.pct(40)) })}, // the leader replicates to one member
	{"repl", leading(func(x *walk, _ *node) { x.spread(25) })},
	{"repl-all", leading(func(x *walk, l *node) { // and all learn the commit index
		x.wake(50)
		l.step(raft.Tick{})
		x.exchange(6, x.drop/3, func(m *message) bool { return isLog(m) && (m.From == l.id || m.To == l.id) })
	})},
	{"acks", leading(func(x *walk, l *node) {
		x.exchange(1, x.drop, func(m *message) bool { return m.To == l.id && isLog(m) })
	})},
}

// leading makes a move of some leader, if there is one.
func leading(do func(x *walk, leader *node)) func(x *walk, n *node) {
	return func(x *walk, _ *node) {
		if leader := x.someLeader(); leader != nil {
			do(x, leader)
		}
	}
}

// worldMoves are faults, and time.
var worldMoves = []move{
	{"apply", func(x *walk, n *node) {
		n.apply(1 + x.some(len(n.toApply)+1))
		if x.pct(50) {
			n.flush()
		}
	}},
	{"hold", func(x *walk, n *node) { x.hold(n) }}, // a member applies late, writes late or answers late
	{"crash", func(x *walk, n *node) {
		if x.profile.name == "messages" {
			n.crash()
			return
		}
		if leader := x.someLeader(); leader != nil && x.pct(50) {
			n = leader
		}
		x.fall(n)
	}},
	{"crash-all", func(x *walk, _ *node) {
		for _, n := range x.nodes {
			if x.pct(85) {
				x.fall(n)
			}
		}
	}},
	{"start", func(x *walk, _ *node) {
		for _, n := range x.nodes {
			if n.replica == nil {
				n.start()
			}
		}
	}},
	{"late", func(x *walk, _ *node) { // a message that was lost, or that arrived before
		if len(x.past) > 0 {
			x.hand(x.past[x.some(len(x.past))])
		}
	}},
	{"pump", func(x *walk, _ *node) {
		for range 1 + x.some(8) {
			if len(x.net) > 0 {
				at := x.some(len(x.net))
				m := x.net[at]
				x.net = append(x.net[:at:at], x.net[at+1:]...)
				x.hand(m)
			}
		}
	}},
	{"tick", func(x *walk, _ *node) { x.time(1 + x.some(2)) }},
	{"wait", func(x *walk, _ *node) { x.wait() }}, // until records are orphans
	{"compact", func(x *walk, n *node) { x.compact(n) }},
}

// hear proposes through a follower, if there is one.
func (x *walk) hear(n *node, odds int) {
	leader := x.lastLeader()
	for _, at := range x.rng.Perm(len(x.nodes)) {
		if other := x.nodes[at]; leader != nil && other != leader && other.replica.Leader() == leader.id {
			n = other
		}
	}
	name, on := x.named()
	x.fast(name, on, n.id, x.members(odds)...)
}

// reign makes a member lead, and mostly lets its term begin: its voters have its first entries.
func (x *walk) reign(id memberID) {
	votes := x.members(60)
	if !x.campaigns(2, id, votes...) {
		return
	}
	if x.some(10) < 6 {
		x.give(id, votes...)
	}
	if x.some(2) == 0 {
		x.tell(id, x.members(70)...)
	}
}

// named returns the name and the keys of a proposal: a new one, or an old one again.
func (x *walk) named() (name, on string) {
	at := len(x.ids)
	if at > 0 && x.some(4) == 0 {
		at = x.some(len(x.ids))
	}
	for at >= len(x.keys) {
		x.keys = append(x.keys, []string{"a", "a", "b", "c", "d", "-", "ab"}[x.some(7)])
	}
	return "P" + strconv.Itoa(at), x.keys[at]
}

func (x *walk) members(odds int) []memberID {
	var ids []memberID
	for _, n := range x.nodes {
		if x.pct(odds) {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// command draws a client's command.
func (x *walk) command() string {
	return fmt.Sprintf("%s=%d", x.palette[x.some(len(x.palette))], len(x.proposals)+1)
}

// draw returns a new proposal, or one whose end was reported to no client.
func (x *walk) draw(again bool) consensus.Proposal {
	open := slices.DeleteFunc(slices.Clone(x.proposals), func(p consensus.Proposal) bool {
		_, done := x.laws.done[p.ID]
		return done
	})
	if len(open) > 0 && again {
		return open[x.some(len(open))]
	}
	p := proposalOf(uint64(len(x.proposals)+1), x.command())
	x.proposals = append(x.proposals, p)
	x.laws.invoke(p.ID)
	return p
}

// offer proposes to all voters at once; the leader does not receive the offer with probability lose.
func (x *walk) offer(p consensus.Proposal, drop, lose int) {
	alive := x.alive()
	if len(alive) == 0 {
		return
	}
	via := alive[x.some(len(alive))]
	if leader := x.someLeader(); via == leader || via.replica.Leader() == consensus.NoMember {
		via = alive[x.some(len(alive))]
	}
	if x.infer {
		p.Proposer = via.id
	}
	via.step(raft.Propose{Proposals: []consensus.Proposal{p}, Fast: true})
	sent := x.take(func(m *message) bool {
		return (m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose) && m.Proposals[0].ID == p.ID
	})
	x.rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	for _, m := range sent {
		lost := drop
		if m.Kind == consensus.MsgFastPropose {
			lost = lose
		}
		x.handOrLose(m, lost)
	}
	x.exchange(2, drop/3, func(m *message) bool { return isFast(m) && m.To == via.id })
	if via.replica != nil && via.replica.Leader() != via.id {
		x.exchange(1, drop, isProposal)
	}
}

// toLeader proposes to the leader alone.
func (x *walk) toLeader(p consensus.Proposal) {
	via := x.pick()
	if leader := x.someLeader(); leader != nil && x.pct(50) {
		via = leader
	}
	if x.infer {
		p.Proposer = via.id
	}
	via.step(raft.Propose{Proposals: []consensus.Proposal{p}})
	x.exchange(1, x.drop, isProposal)
}

// vote lets a member campaign among some of the others.
func (x *walk) vote(c *node) {
	if c.replica == nil || leadsNow(c) {
		return
	}
	asked := map[memberID]bool{c.id: true}
	odds := []int{50, 70, 100}[x.some(3)]
	for _, n := range x.nodes {
		if !x.pct(odds) {
			continue
		}
		asked[n.id] = true
		if n.replica != nil && !x.lease {
			n.step(raft.Unreachable{Member: n.replica.Leader()})
		}
	}
	c.step(raft.Campaign{})
	x.exchange(5, x.drop/2, func(m *message) bool { return isVote(m) && asked[m.From] && asked[m.To] })
	if leadsNow(c) {
		x.elections++
	}
}

// ask reads from a member.
func (x *walk) ask(n *node) {
	if n.replica == nil {
		return
	}
	x.readID++
	x.laws.ask(n, x.readID)
	n.step(raft.Read{IDs: []uint64{x.readID}, Spread: x.pct(80)})
	x.exchange(1+x.some(3), x.drop, func(m *message) bool {
		return isRead(m) && (m.From == n.id || m.To == n.id) && (m.Kind != consensus.MsgReadReply || x.pct(50))
	})
}

// changeMembers asks the leader for a change of one or two members.
func (x *walk) changeMembers() {
	leader := x.someLeader()
	if leader == nil || !x.changes {
		return
	}
	request := consensus.ChangeRequest{Protocol: x.protocol()}
	if x.pct(5) {
		x.request(leader.id, consensus.ChangeRequest{Abort: true})
		return
	}
	kinds := []consensus.ChangeKind{
		consensus.ChangeAddVoter, consensus.ChangePromote, consensus.ChangePromote, consensus.ChangePromote,
		consensus.ChangeRemove, consensus.ChangeDemote, consensus.ChangeDemote,
	}
	for range []int{1, 1, 1, 2, 3}[x.some(5)] {
		step, ok := x.changeStep(kinds, len(x.nodes))
		same := func(s consensus.ChangeStep) bool { return s.Member.ID == step.Member.ID }
		if ok && !slices.ContainsFunc(request.Steps, same) {
			request.Steps = append(request.Steps, step)
		}
	}
	if len(request.Steps) > 0 {
		x.request(leader.id, request)
	}
}

func (x *walk) protocol() consensus.Protocol {
	if x.only == anyProtocol {
		return consensus.Protocol(x.some(6))
	}
	return x.only
}

// changeStep draws a step for some member, or adds a new one if there are few.
func (x *walk) changeStep(kinds []consensus.ChangeKind, members int) (step consensus.ChangeStep, ok bool) {
	step = consensus.ChangeStep{Kind: kinds[x.some(len(kinds))], Member: consensus.Member{ID: x.pick().id}}
	if step.Kind == consensus.ChangeAddLearner || step.Kind == consensus.ChangeAddVoter {
		if members >= 8 {
			return step, false
		}
		step.Member = testMember(x.nextID)
		x.add(x.nextID, consensus.Config{})
		x.nextID++
	}
	return step, true
}
