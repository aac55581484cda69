package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/diary"
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

var nemeses = []nemesis{
	{"crash", "one member loses power and starts again", 2 * time.Second, nil, (*World).strikeCrash},
	{"crash-all", "all members lose power at once", 8 * time.Second, nil, (*World).strikeCrashAll},
	{"torn", "what was not synced is lost or torn at a crash, sector by sector", time.Second,
		func(p *plan, _ *rand.Rand) { p.torn = true }, nil},
	{"partition", "the members fall into two halves", 3 * time.Second, nil, (*World).strikePartition},
	{"oneway", "one member can send but not receive, or the reverse", 3 * time.Second, nil, (*World).strikeOneway},
	{"flap", "one link breaks and heals many times", 4 * time.Second, nil, (*World).strikeFlap},
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
	{"slowdisk", "one disk becomes very slow for a while", 3 * time.Second, nil, (*World).strikeSlowDisk},
	{"fulldisk", "one disk is full, or fails, for a while", 6 * time.Second, nil, (*World).strikeFullDisk},
	{"pause", "one member stops running for a while and goes on as if nothing had been", 3 * time.Second, nil,
		(*World).strikePause},
	{"membership", "members are added, promoted, replaced, demoted, updated and removed, one or many at a time",
		500 * time.Millisecond, func(p *plan, rng *rand.Rand) {
			p.reconfigures, p.hits = true, dice.Chance(rng, 0.5)
		}, (*World).strikeMembership},
	{"reconfig-crash", "likewise, and always the leader or those who join are lost in the middle of it", 500 * time.Millisecond,
		func(p *plan, _ *rand.Rand) { p.reconfigures, p.hits = true, true }, (*World).strikeMembership},
	{"transfer", "leadership is handed over", time.Second, nil, (*World).strikeTransfer},
	{"compact", "logs are cut as short as possible, so that members need snapshots", time.Second,
		func(p *plan, rng *rand.Rand) {
			p.Keep, p.Flush = 0, dice.Between(rng, 300*time.Millisecond, 2*time.Second)
			p.mix.CompactEvery = time.Second
		}, nil},
	{"last-word", "only one member hears the leader for a moment, and then both lose power", 3 * time.Second, nil,
		(*World).strikeLastWord},
}

// jobs is drawn in no world: only who names it gets it.
var jobs = nemesis{
	"jobs", "operators ask for jobs and cancel some, machines die, and leaders replace dead voters by standbys",
	2 * time.Second,
	func(p *plan, _ *rand.Rand) { p.jobs, p.reconfigures = true, true }, (*World).strikeJobs,
}

// Nemesis names a kind of fault for the command line.
type Nemesis struct{ Name, About string }

// Nemeses lists all kinds of faults.
func Nemeses() []Nemesis {
	var list []Nemesis
	for _, n := range slices.Concat(nemeses, disks) {
		list = append(list, Nemesis{n.Name, n.About})
	}
	return append(list, Nemesis{jobs.Name, jobs.About})
}

// unleash makes a nemesis strike until the first phase is over.
func (w *World) unleash(n *nemesis, rng *rand.Rand) {
	if n.strike == nil {
		return
	}
	var again func()
	again = func() {
		if w.calm {
			return
		}
		n.strike(w)
		w.After(dice.Exponential(rng, w.plan.gaps[n.Name]), again)
	}
	w.After(dice.Exponential(rng, w.plan.gaps[n.Name]), again)
}

func (w *World) struck(name, detail string) {
	w.counts.Faults[name]++
	w.trace.Note(w.Now(), -1, diary.Nemesis, w.counts.Faults[name], 0, 0, func() string { return name + " " + detail })
}

// victim draws a member that is up, the leader more often than others.
func (w *World) victim() *host {
	up := w.up()
	if len(up) == 0 {
		return nil
	}
	if dice.Chance(w.rng, 0.4) {
		for _, h := range up {
			if h.proc.Node.Replica().Leader() == h.id {
				return h
			}
		}
	}
	return up[w.rng.IntN(len(up))]
}

func (w *World) strikeCrash() {
	if h := w.victim(); h != nil {
		w.struck("crash", fmt.Sprint(h.slot))
		h.crash()
		h.startAfter(dice.Between(w.rng, 10*time.Millisecond, 5*time.Second))
	}
}

func (w *World) strikeCrashAll() {
	w.struck("crash-all", "")
	for _, h := range w.up() {
		h.crash()
		h.startAfter(dice.Between(w.rng, 10*time.Millisecond, 2*time.Second))
	}
}

func (w *World) strikePartition() {
	hosts := w.present()
	w.rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	at := 1 + w.rng.IntN(max(len(hosts)-1, 1))
	if at >= len(hosts) {
		return
	}
	a, b, notice := hosts[:at], hosts[at:], dice.Chance(w.rng, 0.5)
	w.struck("partition", fmt.Sprintf("%d of %d", at, len(hosts)))
	w.net.cut(a, b, notice)
	w.net.cut(b, a, notice)
	w.After(dice.Between(w.rng, 100*time.Millisecond, 10*time.Second), func() {
		w.net.heal(a, b)
		w.net.heal(b, a)
	})
}

func (w *World) strikeOneway() {
	h := w.victim()
	if h == nil {
		return
	}
	one, rest := []*host{h}, w.present()
	w.struck("oneway", fmt.Sprint(h.slot))
	if dice.Chance(w.rng, 0.5) {
		one, rest = rest, one
	}
	w.net.cut(one, rest, dice.Chance(w.rng, 0.3))
	w.After(dice.Between(w.rng, 100*time.Millisecond, 10*time.Second), func() { w.net.heal(one, rest) })
}

func (w *World) strikeFlap() {
	hosts := w.present()
	if len(hosts) < 2 {
		return
	}
	at := w.rng.IntN(len(hosts))
	a, b := hosts[at:at+1], hosts[(at+1)%len(hosts):][:1]
	w.struck("flap", fmt.Sprintf("%d-%d", a[0].slot, b[0].slot))
	times := 2 + w.rng.IntN(10)
	var flap func()
	flap = func() {
		if times--; times < 0 || w.calm {
			return
		}
		w.net.cut(a, b, true)
		w.net.cut(b, a, true)
		w.After(dice.Between(w.rng, time.Millisecond, 300*time.Millisecond), func() {
			w.net.heal(a, b)
			w.net.heal(b, a)
			w.After(dice.Between(w.rng, time.Millisecond, 300*time.Millisecond), flap)
		})
	}
	flap()
}

func (w *World) strikeSlowDisk() {
	if h := w.victim(); h != nil {
		w.struck("slowdisk", fmt.Sprint(h.slot))
		h.slow = dice.Between(w.rng, 10*time.Millisecond, 2*time.Second)
		w.After(dice.Between(w.rng, 500*time.Millisecond, 10*time.Second), func() { h.slow = 0 })
	}
}

// strikeFullDisk makes a member fail for good, as it must; the operator frees the disk and starts it again.
func (w *World) strikeFullDisk() {
	h := w.victim()
	if h == nil {
		return
	}
	w.struck("fulldisk", fmt.Sprint(h.slot))
	full := dice.Chance(w.rng, 0.5)
	h.disk.Full, h.disk.Broken = full, !full
	w.After(dice.Between(w.rng, 10*time.Millisecond, 3*time.Second), func() { h.disk.Full, h.disk.Broken = false, false })
}

func (w *World) strikePause() {
	if h := w.victim(); h != nil {
		w.struck("pause", fmt.Sprint(h.slot))
		h.frozen = w.Now() + dice.Between(w.rng, 10*time.Millisecond, 8*time.Second)
	}
}

func (w *World) strikeTransfer() {
	up := w.up()
	if len(up) == 0 {
		return
	}
	from, to := up[w.rng.IntN(len(up))], up[w.rng.IntN(len(up))]
	w.struck("transfer", fmt.Sprintf("%d to %d", from.slot, to.slot))
	from.proc.Put(raft.Transfer{To: to.id})
}

// strikeLastWord leaves what the fast path decided to those who hold it: one member has the leader's answers and nobody else
// its entries.
func (w *World) strikeLastWord() {
	var leader *host
	var rest []*host
	for _, h := range w.up() {
		if h.proc.Node.Replica().Leader() == h.id {
			leader = h
		} else {
			rest = append(rest, h)
		}
	}
	if leader == nil || len(rest) < 2 {
		return
	}
	at := w.rng.IntN(len(rest))
	confidant := rest[at]
	rest = append(rest[:at:at], rest[at+1:]...)
	w.struck("last-word", fmt.Sprintf("of %d to %d", leader.slot, confidant.slot))
	w.net.cut([]*host{leader}, rest, false)
	both, down := dice.Chance(w.rng, 0.8), dice.Between(w.rng, time.Second, 8*time.Second)
	w.After(dice.Between(w.rng, 20*time.Millisecond, 600*time.Millisecond), func() {
		w.net.heal([]*host{leader}, rest)
		if w.calm {
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
