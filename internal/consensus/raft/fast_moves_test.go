package raft_test

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// move is a likely run of steps of a walk.
type move int

const (
	moveFast      move = iota
	moveFastLossy      // about half of the records are lost
	moveOrphan         // the leader never hears of it
	moveAlone          // nobody else does
	moveDrowsy         // some answer before, or after, their disks have it, and fall
	moveRetry          // through anybody, at once or slowly
	moveSlow
	moveElect
	moveTouch   // a leader makes its term known, not its entries
	movePartial // it brings one member in line
	moveRepl    // some of them
	moveReplAll // and all know what committed
	moveAcks
	moveApply
	moveHold // somebody applies late, writes late or answers late
	moveCrash
	moveCrashAll
	moveStart
	moveRead
	moveLate // something that was lost, or that was here before
	movePump
	moveTick
	moveWait // until records are orphans
	moveCompact
	moveTransfer
	moveChange
	moveChangeRound // with a part of the replication that it takes
	moves
)

var moveNames = [moves]string{
	"fast", "fast-lossy", "orphan", "alone", "drowsy", "retry", "slow", "elect", "touch", "partial", "repl", "repl-all", "acks", "apply", "hold",
	"crash", "crash-all", "start", "read", "late", "pump", "tick", "wait", "compact", "transfer", "change", "change-round",
}

// next draws a move: from the plan as long as there is one.
func (x *walk) next() move {
	if len(x.plan) > 0 {
		m := x.plan[0]
		x.plan = x.plan[1:]
		return m
	}
	total := 0
	for _, w := range x.weights {
		total += w
	}
	at, m := x.some(total), move(0)
	for at >= x.weights[m] {
		at -= x.weights[m]
		m++
	}
	return m
}

func (x *walk) act() {
	m := x.next()
	x.printf("--- %s", moveNames[m])
	leader := x.someLeader()
	switch m {
	case moveFast:
		x.offer(x.proposal(x.pct(15)), x.drop/2, x.lose)
	case moveFastLossy:
		x.offer(x.proposal(x.pct(15)), 55, 10)
	case moveOrphan:
		x.offer(x.proposal(x.pct(15)), x.drop, 100)
	case moveAlone:
		x.offer(x.proposal(x.pct(15)), 100, 0)
	case moveDrowsy:
		x.drowse()
	case moveRetry:
		if p := x.proposal(true); x.pct(75) {
			x.offer(p, x.drop/2, x.lose)
		} else {
			x.slow(p)
		}
	case moveSlow:
		x.slow(x.proposal(x.pct(30)))
	case moveElect:
		x.vote()
	case moveRead:
		x.ask()
	case moveChange:
		x.change()
	case moveChangeRound:
		x.change()
		x.spread([]int{20, 50, 80}[x.some(3)])
	case moveTransfer:
		x.pick().step(raft.Transfer{To: x.pick().id})
		x.exchange(4, x.drop, func(m *message) bool { return !isFast(m) })
	default:
		if leader != nil {
			x.lead(m, leader)
		}
		x.suffer(m)
	}
}

// lead makes the moves of a leader.
func (x *walk) lead(m move, leader *node) {
	switch m {
	case moveTouch:
		leader.step(raft.Tick{})
		x.exchange(1, x.drop, func(m *message) bool { return m.From == leader.id && isLog(m) && len(m.Entries) == 0 })
	case movePartial:
		x.feed(leader, x.pick(), x.pct(40))
	case moveRepl:
		x.spread(25)
	case moveReplAll:
		x.wake(50)
		leader.step(raft.Tick{})
		x.exchange(6, x.drop/3, func(m *message) bool { return isLog(m) && (m.From == leader.id || m.To == leader.id) })
	case moveAcks:
		x.exchange(1, x.drop, func(m *message) bool { return m.To == leader.id && isLog(m) })
	}
}

// spread lets the leader bring members in line, but for so many per cent of them.
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

// suffer makes the moves that nobody wants, and those of time.
func (x *walk) suffer(m move) {
	n := x.pick()
	switch m {
	case moveApply:
		n.apply(1 + x.some(len(n.toApply)+1))
		if x.pct(50) {
			n.flush()
		}
	case moveHold:
		x.hold(n)
	case moveCrash:
		if leader := x.someLeader(); leader != nil && x.pct(50) {
			n = leader
		}
		x.fall(n)
	case moveCrashAll:
		for _, n := range x.nodes {
			if x.pct(85) {
				x.fall(n)
			}
		}
	case moveStart:
		for _, n := range x.nodes {
			if n.replica == nil {
				n.start()
			}
		}
	case moveLate:
		if len(x.past) > 0 {
			x.hand(x.past[x.some(len(x.past))])
		}
	case movePump:
		for range 1 + x.some(8) {
			if len(x.net) > 0 {
				at := x.some(len(x.net))
				m := x.net[at]
				x.net = append(x.net[:at:at], x.net[at+1:]...)
				x.hand(m)
			}
		}
	case moveTick:
		x.time(1 + x.some(2))
	case moveWait:
		x.wait()
	case moveCompact:
		if n.replica != nil {
			n.compact(n.store.position.Index)
		}
	}
}

// hold makes a member slow in something, or quick again.
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

// drowse lets some disks be slow while all hear of a proposal; some of their members fall then.
func (x *walk) drowse() {
	var slow []*node
	for _, n := range x.nodes {
		if n.replica != nil && x.pct(35) {
			n.slowDisk = true
			slow = append(slow, n)
		}
	}
	x.offer(x.proposal(x.pct(15)), 0, 0)
	for _, n := range slow {
		if x.pct(60) {
			x.fall(n)
		}
		n.slowDisk = false
		n.sync(len(n.pending))
		x.drain(n)
	}
}

// time passes, for everybody if leases rest on that.
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

// wait lets time pass in peace, but for what is lost of the fast path.
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

// prepare draws the weights and the plan of a walk.
func (x *walk) prepare() {
	x.drop = []int{0, 5, 15, 30}[x.some(4)]
	x.lose, x.late = 5, 50
	palettes := [][]string{
		{"a", "b"}, {"a", "a", "a", "b", "b", "ab"}, {"a", "b", "c", "d", "e", "~f"}, {"a", "~a", "b", "ab", "c", "d", "*", "!"},
		{"a", "b", "c", "ab", "bc", "d", "-", "-"}, {"a", "b", "c", "d", "e", "f", "g", "h", "ab", "cd"}, {"a", "b", "c", "d"},
	}
	x.palette = palettes[x.some(len(palettes))]
	for m := range x.weights {
		x.weights[m] = []int{0, 1, 3, 8}[x.some(4)]
	}
	w := &x.weights
	w[moveFast] += 5
	w[moveElect] += 2
	w[moveRepl] += 3
	w[moveReplAll] += 3
	w[moveStart] += 2
	if x.pct(60) {
		x.plan = append(x.plan, moveFast)
	}
	w[moveWait], w[moveCrashAll], w[moveTransfer] = min(w[moveWait], x.some(2)), min(w[moveCrashAll], 1), min(w[moveTransfer], 1)
	quiet := func(all ...move) {
		for _, m := range all {
			w[m] = x.some(10) / 7
		}
	}
	for _, m := range []move{moveOrphan, moveAlone, moveFastLossy, moveDrowsy, moveHold, moveLate} {
		w[m] = x.some(3)
	}
	some := func(least, most int, among ...move) {
		for range least + x.some(most-least+1) {
			x.plan = append(x.plan, among[x.some(len(among))])
		}
	}
	x.aimAt(quiet, some)
	if !x.changes {
		w[moveChange], w[moveChangeRound] = 0, 0
	}
}

func (x *walk) aimAt(quiet func(...move), some func(least, most int, among ...move)) {
	w := &x.weights
	gentle := []int{0, 5, 10}[x.some(3)]
	switch x.profile {
	case churn:
		some(1, 3, moveFast)
		w[moveElect], w[movePartial], w[moveFast] = 12, 8+x.some(16), 3
		quiet(moveAcks, moveApply, moveCrash, moveCrashAll, moveRead, moveRepl, moveReplAll, moveSlow, moveLate, moveWait, moveTick, moveTransfer, movePump)
		x.drop = gentle
	case skips:
		some(1, 1, moveOrphan)
		some(1, 2, moveSlow, moveFast)
		some(1, 1, moveReplAll)
		some(1, 1, moveElect)
		some(1, 2, moveReplAll, moveRepl, movePartial)
		some(1, 2, moveRetry)
		some(0, 2, moveReplAll, movePartial)
		some(1, 2, moveElect)
		some(1, 1, moveReplAll)
		x.lose, x.drop = 30, gentle
		w[moveSlow], w[moveRetry], w[moveFast], w[moveApply], w[moveAcks], w[moveElect], w[moveReplAll] = 6, 8, 6, 3, 6, 5, 6
		quiet(moveCrash, moveCrashAll, moveRead, moveHold, moveWait, moveTick, moveTransfer, movePump)
	case stale:
		some(1, 2, moveFastLossy)
		some(1, 1, moveElect)
		some(1, 1, moveTouch)
		some(1, 2, moveRepl, movePartial)
		some(1, 1, moveAcks)
		some(1, 3, moveFast)
		some(0, 2, moveRepl, movePartial, moveTouch)
		for range 1 + x.some(3) {
			some(1, 1, moveElect)
			some(0, 2, movePartial)
		}
		some(1, 1, moveReplAll)
		x.drop = gentle
	case conf:
		some(0, 3, moveChangeRound, moveFast)
		w[moveChangeRound], w[moveElect], w[moveFast], w[moveReplAll] = 5, 6, 8, 5
		quiet(moveCrash, moveCrashAll, moveRead, moveSlow)
	case rivals:
		some(1, 1, moveChangeRound)
		some(0, 1, moveFast)
		some(1, 1, moveElect)
		some(0, 2, moveTouch, moveRepl)
		some(1, 1, moveChangeRound)
		some(1, 2, moveFast)
		some(0, 1, movePartial, moveRepl)
		some(1, 1, moveElect)
		some(0, 1, moveChangeRound)
		some(0, 1, moveFast)
		some(1, 1, moveReplAll)
	case pairs:
		some(0, 1, moveFast, moveSlow)
		some(1, 3, moveOrphan, moveAlone, moveFastLossy)
		some(1, 2, moveFast)
		some(0, 1, moveTouch, movePartial)
		some(1, 1, moveElect)
		some(0, 2, moveOrphan, moveAlone, moveSlow)
		some(0, 2, movePartial, moveRepl)
		some(1, 1, moveFast)
		some(1, 2, moveElect)
		some(1, 1, moveReplAll)
		w[moveElect], w[movePartial], w[moveOrphan], w[moveAlone] = 8, 6, 4, 4
		quiet(moveCrash, moveCrashAll, moveRead, moveWait, moveTransfer, moveApply, movePump)
		x.drop, x.lose = gentle/2, 0
	case drowsy:
		some(1, 2, moveDrowsy)
		some(1, 1, moveElect)
		some(0, 1, moveRepl, movePartial)
		some(1, 1, moveDrowsy)
		w[moveDrowsy], w[moveElect], w[moveHold] = 8, 6, 3
		x.drop = gentle
	case reading:
		w[moveRead], w[moveFast], w[moveReplAll] = 12, 8, 4
		quiet(moveCrash, moveCrashAll, moveWait)
	}
}

// fate tells how the fast path went on all members, since they started last.
func (x *walk) counts() raft.FastCounts {
	var sum raft.FastCounts
	for _, n := range x.nodes {
		if n.replica == nil {
			continue
		}
		c := n.replica.FastCounts()
		sum.Tried += c.Tried
		sum.Decided += c.Decided
		sum.Accepted += c.Accepted
		sum.Answered += c.Answered
		sum.Recovered += c.Recovered
		sum.Aborted += c.Aborted
		for why := range consensus.RefusedReasons {
			sum.Refused[why] += c.Refused[why]
		}
	}
	return sum
}
