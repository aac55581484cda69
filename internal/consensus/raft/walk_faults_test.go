package raft_test

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// The parts of moves in which messages arrive or not, and members crash.

// hand gives one message to its receiver, which mostly completes at once the work that follows from it.
func (x *walk) hand(m message) {
	x.delivered++
	x.deliver(m)
	if x.pct(30) {
		x.remember(m)
	}
	for _, n := range x.nodes {
		if n.id == m.To && x.pct(96) {
			x.drain(n)
		}
	}
}

// handOrLose loses a message with some probability; some of the lost ones come late.
func (x *walk) handOrLose(m message, lost int) {
	switch {
	case !x.pct(lost):
		x.hand(m)
	case x.pct(x.late):
		x.remember(m)
	}
}

func (x *walk) remember(m message) {
	if len(x.past) < 60 {
		x.past = append(x.past, m)
	} else {
		x.past[x.some(60)] = m
	}
}

func (x *walk) drain(n *node) {
	for i := 0; i < 4 && n.drain(); i++ {
	}
}

// exchange delivers the messages that pass, and the answers to them, for some rounds. Some are lost, or come late.
func (x *walk) exchange(rounds, drop int, pass func(m *message) bool) {
	for range rounds {
		for _, n := range x.nodes {
			x.drain(n)
		}
		batch := x.take(pass)
		if len(batch) == 0 || x.broken() {
			return
		}
		if x.pct(40) {
			x.rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		}
		for _, m := range batch {
			x.handOrLose(m, drop)
		}
	}
}

// feed lets a leader replicate to one member, with its commit index or without.
func (x *walk) feed(leader, to *node, told bool) {
	leader.step(raft.Tick{})
	x.exchange(1+x.some(6), x.drop/3, func(m *message) bool {
		return isLog(m) && (m.From == leader.id && m.To == to.id || told && m.From == to.id && m.To == leader.id)
	})
}

// spread lets the leader replicate to members, but for so many per cent of them.
func (x *walk) spread(less int) {
	leader := x.someLeader()
	if leader == nil {
		return
	}
	told := x.pct(60)
	for _, n := range x.nodes {
		if n != leader && n.replica != nil && !x.pct(less) {
			x.feed(leader, n, told)
		}
	}
}

// deliverOne delivers the oldest message, or any; it may be lost, or stay, to arrive again.
func (x *walk) deliverOne() {
	if len(x.net) == 0 {
		return
	}
	at := 0
	if x.some(4) == 0 {
		at = x.some(len(x.net)) // out of order
	}
	m := x.net[at]
	if x.some(20) != 0 { // else it stays, and is delivered again
		x.net = slices.Delete(x.net, at, at+1)
	}
	if x.some(x.loss) != 0 { // else it is lost
		x.deliver(m)
		x.delivered++
	}
}

// partition cuts the network in two, in one direction or both, or joins it again.
func (x *walk) partition() {
	clear(x.blocked)
	if x.some(2) == 0 {
		return
	}
	split, oneWay := x.some(1<<9), x.some(4) == 0
	for i, a := range x.nodes {
		for j, b := range x.nodes {
			left, right := split>>i&1, split>>j&1
			if left < right || (left > right && !oneWay) {
				x.blocked[[2]memberID{a.id, b.id}] = true
			}
		}
	}
}

// compact also checks that the log and the store agree on the position of a snapshot.
func (x *walk) compact(n *node) {
	if n.replica == nil {
		return
	}
	n.compact(n.store.position.Index)
	got, want := n.replica.Base(), n.store.meta()
	if got.Position != want.Position {
		return // the log keeps more entries
	}
	if got.ConfigID != want.ConfigID || got.Protocol != want.Protocol || got.Open != want.Open ||
		describeConfig(&got.Config) != describeConfig(&want.Config) || !slices.Equal(got.Tombs, want.Tombs) {
		x.laws.breach("%v: the log says of %v: %+v, the store %+v", n.id, got.Position, got, want)
	}
}

// switchOff stops a member for ever once that is allowed.
func (x *walk) switchOff(n *node) {
	if x.laws.retired[n.id] {
		n.crash()
		n.off = true
	}
}

// reconfigure asks some member for some change: of one member or several, by any protocol, expecting any configuration.
func (x *walk) reconfigure(n *node) {
	if !x.changes {
		return
	}
	request := consensus.ChangeRequest{Protocol: x.protocol()}
	switch x.some(12) {
	case 0:
		request.Expected = n.replica.InForce().ID
	case 1:
		request.Expected = x.pick().store.about.ConfigID
	}
	if x.some(8) == 0 {
		x.request(n.id, consensus.ChangeRequest{Expected: request.Expected, Abort: true})
		return
	}
	kinds := []consensus.ChangeKind{
		consensus.ChangeAddVoter, consensus.ChangeAddLearner, consensus.ChangePromote, consensus.ChangeRemove, consensus.ChangeUpdate,
		consensus.ChangeDemote, consensus.ChangeCordon, consensus.ChangeUncordon,
	}
	for range []int{1, 1, 1, 2, 2, 3, 4}[x.some(7)] {
		if step, ok := x.changeStep(kinds, x.stay()); ok {
			request.Steps = append(request.Steps, step)
		}
	}
	if len(request.Steps) > 0 {
		x.request(n.id, request)
	}
}

// hold makes a member slow in some part, or quick again.
func (x *walk) hold(n *node) {
	switch x.some(3) {
	case 0:
		if n.holdApply = !n.holdApply; !n.holdApply {
			n.apply(len(n.toApply))
		}
	case 1:
		if n.slowDisk = !n.slowDisk; !n.slowDisk {
			n.sync(len(n.pending))
		} else if x.pct(50) {
			n.sync(x.some(len(n.pending) + 1))
		}
	default:
		if n.slowReply = !n.slowReply; !n.slowReply {
			n.reply()
		}
	}
	x.drain(n)
}

// wake makes members quick again, with some probability each.
func (x *walk) wake(odds int) {
	for _, n := range x.nodes {
		if n.replica == nil || !x.pct(odds) {
			continue
		}
		n.slowDisk, n.slowReply, n.holdApply = false, false, false
		n.sync(len(n.pending))
		n.reply()
		n.apply(len(n.toApply))
		x.drain(n)
	}
}

// fall stops a member; it comes back at once, or later.
func (x *walk) fall(n *node) {
	if n.replica != nil && x.pct(30) {
		n.sync(x.some(len(n.pending) + 1))
	}
	n.crash()
	x.printf("%v falls", n.id)
	if x.pct(80) {
		n.slowDisk, n.slowReply, n.holdApply = false, false, false
	}
	if x.pct(75) {
		n.start()
	}
}

// drowse lets some disks be slow while all members receive a proposal; some of their members crash then.
func (x *walk) drowse() {
	var slow []*node
	for _, n := range x.nodes {
		if n.replica != nil && x.pct(35) {
			n.slowDisk = true
			slow = append(slow, n)
		}
	}
	x.offer(x.draw(x.pct(15)), 0, 0)
	for _, n := range slow {
		if x.pct(60) {
			x.fall(n)
		}
		n.slowDisk = false
		n.sync(len(n.pending))
		x.drain(n)
	}
}

// time passes, for all members at once if leases depend on that.
func (x *walk) time(ticks int) {
	for range ticks {
		for _, n := range x.nodes {
			if x.lease || x.pct(60) {
				n.step(raft.Tick{})
			}
		}
		x.exchange(1, x.drop, func(m *message) bool { return !isFast(m) })
	}
}

// wait lets time pass without faults, but for messages of the fast path that are lost.
func (x *walk) wait() {
	for range 20 {
		for _, n := range x.nodes {
			n.step(raft.Tick{})
		}
		x.exchange(2, 0, func(m *message) bool { return !isFast(m) })
		if x.broken() {
			return
		}
	}
}
