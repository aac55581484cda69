package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/dice"
)

// nemesis is one kind of fault. plan sets what lasts for the whole first phase; strike is called again and again, with
// exponential pauses, and undoes itself after a while.
type nemesis struct {
	Name, About string
	shortest    time.Duration // least mean pause between two blows
	plan        func(p *plan, rng *rand.Rand)
	strike      func(w *World)
}

func byFaults(strike func(*faults)) func(*World)       { return func(w *World) { strike(w.faults) } }
func byDisks(strike func(*diskFaults)) func(*World)    { return func(w *World) { strike(w.disks) } }
func byOperators(strike func(*operators)) func(*World) { return func(w *World) { strike(w.operators) } }

var nemeses = []nemesis{
	{"crash", "one member loses power and starts again", 2 * time.Second, nil, byFaults((*faults).strikeCrash)},
	{"crash-all", "all members lose power at once", 8 * time.Second, nil, byFaults((*faults).strikeCrashAll)},
	{"torn", "what was not synced is lost or torn at a crash, sector by sector", time.Second,
		func(p *plan, _ *rand.Rand) { p.torn = true }, nil},
	{"partition", "the members fall into two halves", 3 * time.Second, nil, byFaults((*faults).strikePartition)},
	{"oneway", "one member can send but not receive, or the reverse", 3 * time.Second, nil, byFaults((*faults).strikeOneway)},
	{"flap", "one link breaks and heals many times", 4 * time.Second, nil, byFaults((*faults).strikeFlap)},
	{"delay", "some messages are late", time.Second, func(p *plan, rng *rand.Rand) {
		p.weather.spike, p.weather.spikeUpTo = rng.Float64()/10, dice.Between(rng, time.Millisecond, 2*time.Second)
	}, nil},
	{"loss", "some messages are lost", time.Second,
		func(p *plan, rng *rand.Rand) { p.weather.loss = rng.Float64() / 5 }, nil},
	{"dup", "some messages arrive twice", time.Second,
		func(p *plan, rng *rand.Rand) { p.weather.dup = rng.Float64() / 5 }, nil},
	{"reorder", "some messages overtake others", time.Second,
		func(p *plan, rng *rand.Rand) { p.weather.reorder = rng.Float64() / 2 }, nil},
	{"drift", "clocks run fast or slow", time.Second,
		func(p *plan, rng *rand.Rand) { p.drift = rng.Float64() / 50 }, nil},
	{"slowdisk", "one disk becomes very slow for a while", 3 * time.Second, nil, byFaults((*faults).strikeSlowDisk)},
	{"fulldisk", "one disk is full, or fails, for a while", 6 * time.Second, nil, byFaults((*faults).strikeFullDisk)},
	{"pause", "one member stops running for a while and goes on as if nothing had been", 3 * time.Second, nil,
		byFaults((*faults).strikePause)},
	{"membership", "members are added, promoted, replaced, demoted, updated and removed, one or many at a time",
		500 * time.Millisecond, func(p *plan, rng *rand.Rand) {
			p.reconfigures, p.hits = true, dice.Chance(rng, 0.5)
		}, byOperators((*operators).strikeMembership)},
	{"reconfig-crash", "likewise, and always the leader or those who join are lost in the middle of it", 500 * time.Millisecond,
		func(p *plan, _ *rand.Rand) { p.reconfigures, p.hits = true, true }, byOperators((*operators).strikeMembership)},
	{"transfer", "leadership is handed over", time.Second, nil, byFaults((*faults).strikeTransfer)},
	{"compact", "logs are cut as short as possible, so that members need snapshots", time.Second,
		func(p *plan, rng *rand.Rand) {
			p.Keep, p.Flush = 0, dice.Between(rng, 300*time.Millisecond, 2*time.Second)
			p.mix.CompactEvery = time.Second
		}, nil},
	{"last-word", "only one member hears the leader for a moment, and then both lose power", 3 * time.Second, nil,
		byFaults((*faults).strikeLastWord)},
	{"skew", "clocks differ, by a moment or by an hour", time.Second, func(p *plan, rng *rand.Rand) {
		p.skew = dice.Pick(rng, 2*time.Millisecond, 50*time.Millisecond, 5*time.Second, time.Hour)
	}, nil},
}

// named are drawn in no world: they are in those with all faults, and where they are named. Their chance is a stream of their
// own, so that a row here leaves the seeds of all other faults alone.
var named = []nemesis{
	{"jobs", "operators ask for jobs and cancel some, machines die, and leaders replace dead voters by standbys",
		2 * time.Second,
		func(p *plan, _ *rand.Rand) { p.jobs, p.reconfigures = true, true }, byOperators((*operators).strikeJobs)},
}

// Nemesis names a kind of fault for the command line.
type Nemesis struct{ Name, About string }

// Nemeses lists all kinds of faults.
func Nemeses() []Nemesis {
	var list []Nemesis
	for _, n := range slices.Concat(nemeses, disks, named) {
		list = append(list, Nemesis{n.Name, n.About})
	}
	return list
}

// unleash makes a nemesis strike until the first phase is over.
func (w *World) unleash(n *nemesis, rng *rand.Rand) {
	if n.strike == nil {
		return
	}
	var again func()
	again = func() {
		if w.run.calm {
			return
		}
		n.strike(w)
		w.run.After(dice.Exponential(rng, w.run.plan.gaps[n.Name]), again)
	}
	w.run.After(dice.Exponential(rng, w.run.plan.gaps[n.Name]), again)
}

// faults are those of power, network, disks and time.
type faults struct {
	run     *run
	cluster *cluster
	rng     *rand.Rand
}

func (f *faults) strikeCrash() {
	if h := f.cluster.victim(); h != nil {
		f.run.struck("crash", fmt.Sprint(h.slot))
		h.crash()
		h.startAfter(dice.Between(f.rng, 10*time.Millisecond, 5*time.Second))
	}
}

func (f *faults) strikeCrashAll() {
	f.run.struck("crash-all", "")
	for _, h := range f.cluster.up() {
		h.crash()
		h.startAfter(dice.Between(f.rng, 10*time.Millisecond, 2*time.Second))
	}
}

func (f *faults) strikePartition() {
	hosts := f.cluster.present()
	f.rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	at := 1 + f.rng.IntN(max(len(hosts)-1, 1))
	if at >= len(hosts) {
		return
	}
	a, b, notice := hosts[:at], hosts[at:], dice.Chance(f.rng, 0.5)
	f.run.struck("partition", fmt.Sprintf("%d of %d", at, len(hosts)))
	f.cluster.net.cut(a, b, notice)
	f.cluster.net.cut(b, a, notice)
	f.run.After(dice.Between(f.rng, 100*time.Millisecond, 10*time.Second), func() {
		f.cluster.net.heal(a, b)
		f.cluster.net.heal(b, a)
	})
}

func (f *faults) strikeOneway() {
	h := f.cluster.victim()
	if h == nil {
		return
	}
	one, rest := []*host{h}, f.cluster.present()
	f.run.struck("oneway", fmt.Sprint(h.slot))
	if dice.Chance(f.rng, 0.5) {
		one, rest = rest, one
	}
	f.cluster.net.cut(one, rest, dice.Chance(f.rng, 0.3))
	f.run.After(dice.Between(f.rng, 100*time.Millisecond, 10*time.Second), func() { f.cluster.net.heal(one, rest) })
}

func (f *faults) strikeFlap() {
	hosts := f.cluster.present()
	if len(hosts) < 2 {
		return
	}
	at := f.rng.IntN(len(hosts))
	a, b := hosts[at:at+1], hosts[(at+1)%len(hosts):][:1]
	f.run.struck("flap", fmt.Sprintf("%d-%d", a[0].slot, b[0].slot))
	times := 2 + f.rng.IntN(10)
	var flap func()
	flap = func() {
		if times--; times < 0 || f.run.calm {
			return
		}
		f.cluster.net.cut(a, b, true)
		f.cluster.net.cut(b, a, true)
		f.run.After(dice.Between(f.rng, time.Millisecond, 300*time.Millisecond), func() {
			f.cluster.net.heal(a, b)
			f.cluster.net.heal(b, a)
			f.run.After(dice.Between(f.rng, time.Millisecond, 300*time.Millisecond), flap)
		})
	}
	flap()
}

func (f *faults) strikeSlowDisk() {
	if h := f.cluster.victim(); h != nil {
		f.run.struck("slowdisk", fmt.Sprint(h.slot))
		h.slow = dice.Between(f.rng, 10*time.Millisecond, 2*time.Second)
		f.run.After(dice.Between(f.rng, 500*time.Millisecond, 10*time.Second), func() { h.slow = 0 })
	}
}

// strikeFullDisk makes a member fail for good, as it must; the operator frees the disk and starts it again.
func (f *faults) strikeFullDisk() {
	h := f.cluster.victim()
	if h == nil {
		return
	}
	f.run.struck("fulldisk", fmt.Sprint(h.slot))
	full := dice.Chance(f.rng, 0.5)
	h.disk.Full, h.disk.Broken = full, !full
	f.run.After(dice.Between(f.rng, 10*time.Millisecond, 3*time.Second), func() {
		h.disk.Full, h.disk.Broken = false, false
	})
}

func (f *faults) strikePause() {
	if h := f.cluster.victim(); h != nil {
		f.run.struck("pause", fmt.Sprint(h.slot))
		h.frozen = f.run.Now() + dice.Between(f.rng, 10*time.Millisecond, 8*time.Second)
	}
}

func (f *faults) strikeTransfer() {
	up := f.cluster.up()
	if len(up) == 0 {
		return
	}
	from, to := up[f.rng.IntN(len(up))], up[f.rng.IntN(len(up))]
	f.run.struck("transfer", fmt.Sprintf("%d to %d", from.slot, to.slot))
	from.proc.Put(raft.Transfer{To: to.id})
}

// strikeLastWord leaves what the fast path decided to those who hold it: one member has the leader's answers and nobody else
// its entries.
func (f *faults) strikeLastWord() {
	var leader *host
	var rest []*host
	for _, h := range f.cluster.up() {
		if h.proc.Node.Replica().Leader() == h.id {
			leader = h
		} else {
			rest = append(rest, h)
		}
	}
	if leader == nil || len(rest) < 2 {
		return
	}
	at := f.rng.IntN(len(rest))
	confidant := rest[at]
	rest = append(rest[:at:at], rest[at+1:]...)
	f.run.struck("last-word", fmt.Sprintf("of %d to %d", leader.slot, confidant.slot))
	f.cluster.net.cut([]*host{leader}, rest, false)
	both, down := dice.Chance(f.rng, 0.8), dice.Between(f.rng, time.Second, 8*time.Second)
	f.run.After(dice.Between(f.rng, 20*time.Millisecond, 600*time.Millisecond), func() {
		f.cluster.net.heal([]*host{leader}, rest)
		if f.run.calm {
			return
		}
		for _, h := range []*host{leader, confidant} {
			if h.alive && (both || h == leader) {
				h.crash()
				h.startAfter(down)
			}
		}
	})
}
