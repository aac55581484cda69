package lab

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/kernel"
)

// Short names of types for this package.
type (
	memberID = consensus.MemberID
	message  = consensus.Message
	entry    = consensus.Entry
	position = consensus.Position
)

// pace is how long operations take.
type pace struct {
	delay time.Duration // of a link, one way
	sync  time.Duration // of a disk
	apply time.Duration // of a batch, by the state machine
	tick  time.Duration
}

// Ticks: a tick is at least the delay of a link, so that an election timeout is many round trips on any network.
const (
	electionTicks  = 20
	heartbeatTicks = 2
	lagFactor      = 10
)

func paceFor(delay time.Duration) pace {
	return pace{delay: delay, sync: 300 * time.Microsecond, apply: 100 * time.Microsecond, tick: max(5*time.Millisecond, delay)}
}

// world is the cluster, its network and its clock.
type world struct {
	pace
	kernel.Schedule
	origin time.Duration // the chart's zero
	rng    *rand.Rand
	broken breaks

	members  []*member // by id, from 1
	net      network
	journal  journal
	names    names
	laws     laws
	judge    judge
	clients  clients
	operator operator
	stages   stages
	counts   Counts
	recorder recorder
	events   int
	stuck    bool // no write was acknowledged any more, until all faults ended
}

func newWorld(seed uint64, delay time.Duration, broken breaks) *world {
	w := &world{pace: paceFor(delay), rng: rand.New(rand.NewPCG(seed, 7)), broken: broken}
	w.net = newNetwork(w)
	w.journal.w, w.laws.w, w.clients.w, w.operator.w, w.stages.w = w, w, w, w, w
	return w
}

func (w *world) when(at time.Duration, run func()) { w.After(at-w.Now(), run) }

// yieldEvery is after how many events other goroutines have a turn: in a browser nothing interrupts this one, and the collector
// of garbage is goroutines. It changes nothing of a run.
const yieldEvery = 16

// runUntil runs events until ready returns true, or for limit; it reports whether ready did.
func (w *world) runUntil(limit time.Duration, ready func() bool) bool {
	end := w.Now() + limit
	w.recorder.capture()
	for !ready() {
		if w.events++; w.events%yieldEvery == 0 {
			runtime.Gosched()
		}
		run := w.Next(end)
		if run == nil {
			w.Pass(end)
			return false
		}
		run()
		w.recorder.capture()
	}
	return true
}

func (w *world) runFor(limit time.Duration) { w.runUntil(limit, func() bool { return false }) }

// jitter varies a wait a little: no operation takes exactly as long as the time before.
func (w *world) jitter(wait time.Duration) time.Duration {
	return wait + time.Duration(w.rng.Int64N(int64(wait)/10+1))
}

func (w *world) member(id memberID) *member { return w.members[id-1] }

// leader returns the running leader of the highest term, or nil.
func (w *world) leader() *member {
	var leader *member
	for _, m := range w.members {
		if m.running() && m.status.Role == raft.Leader && (leader == nil || m.status.Term > leader.status.Term) {
			leader = m
		}
	}
	return leader
}

// start makes members 1..voters a cluster that 1 leads, with the members after them, up to learners, as learners that have
// caught up, and the others up to total not started yet. The chart does not show it.
func (w *world) start(voters, learners, total int, ticking bool) {
	w.journal.silent = true
	w.found(voters, total)
	if ticking {
		w.startClocks()
	}
	if learners > 0 {
		w.feed(voters, voters+learners)
	}
}

// begin lets some time pass that the chart does not show, and starts the chart.
func (w *world) begin(wait time.Duration) {
	w.runFor(wait)
	w.origin, w.clients.begun = w.Now(), w.Now()
	w.journal.silent = false
	w.counts = Counts{}
	for _, m := range w.members {
		m.touched = true
	}
}

func (w *world) found(voters, total int) {
	var first []memberID
	for id := memberID(1); id <= memberID(total); id++ {
		w.members = append(w.members, newMember(w, id))
		if int(id) <= voters {
			first = append(first, id)
		}
	}
	config := configOf(first)
	w.names.note(consensus.ConfigID{Index: 1, Term: 1}, &config)
	for _, id := range first {
		w.member(id).store.found(&config)
	}
	w.judge = judge{check.NewSuite(w.Now, w.member(1).store.meta())}
	for _, id := range first {
		m := w.member(id)
		m.disk.base = m.store.meta()
		m.logBase = m.disk.base.Position.Index
		m.start()
	}
	w.member(1).step(raft.Campaign{})
	w.runUntil(time.Minute, func() bool {
		for _, id := range first {
			if m := w.member(id); m.status.Leader != 1 || m.status.Applied < 2 {
				return false
			}
		}
		return true
	})
}

// feed adds members as learners, and waits until they hold the leader's log.
func (w *world) feed(voters, upto int) {
	var steps []consensus.ChangeStep
	for id := memberID(voters + 1); id <= memberID(upto); id++ {
		w.member(id).start()
		steps = append(steps, consensus.ChangeStep{Kind: consensus.ChangeAddLearner, Member: attributes(id)})
	}
	w.member(1).step(changeInput(1, &consensus.ChangeRequest{Steps: steps}))
	w.runUntil(time.Minute, func() bool {
		leader := w.member(1).status
		for id := memberID(1); id <= memberID(upto); id++ {
			if m := w.member(id); !m.status.ConfigSettled || m.status.Applied < leader.LastIndex {
				return false
			}
		}
		return leader.ConfigSettled && allCaughtUp(leader.Progress)
	})
}

func allCaughtUp(progress []raft.PeerProgress) bool {
	for i := range progress {
		if !progress[i].CaughtUp {
			return false
		}
	}
	return true
}

// startClocks starts the ticks of members that run now, or will.
func (w *world) startClocks() {
	for i, m := range w.members {
		var tick func()
		tick = func() {
			m.step(raft.Tick{})
			w.After(w.tick, tick)
		}
		w.After(w.tick*time.Duration(i+1)/time.Duration(len(w.members)+1), tick)
	}
}

func configOf(voters []memberID) consensus.Config {
	c := consensus.Config{Voters: voters}
	for _, id := range voters {
		c.Members = append(c.Members, attributes(id))
	}
	return c
}
