package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/dice"
	"github.com/quorate/quorate/internal/sim/plan"
)

func byFaults(strike func(*faults)) func(*World) { return func(w *World) { strike(w.faults) } }
func byAddresses(strike func(*addressFaults)) func(*World) {
	return func(w *World) { strike(w.addresses) }
}
func byDisks(strike func(*diskFaults)) func(*World)    { return func(w *World) { strike(w.disks) } }
func byOperators(strike func(*operators)) func(*World) { return func(w *World) { strike(w.operators) } }

// strikes are the actions of the nemeses that strike repeatedly.
var strikes = map[string]func(*World){
	"crash":              byFaults((*faults).strikeCrash),
	"crash-all":          byFaults((*faults).strikeCrashAll),
	"partition":          byFaults((*faults).strikePartition),
	"oneway":             byFaults((*faults).strikeOneway),
	"flap":               byFaults((*faults).strikeFlap),
	"slowdisk":           byFaults((*faults).strikeSlowDisk),
	"hung-store":         byFaults((*faults).strikeHungStore),
	"limits":             (*World).strikeLimits,
	"backup":             (*World).strikeBackup,
	"audit":              (*World).strikeAudit,
	"fulldisk":           byFaults((*faults).strikeFullDisk),
	"pause":              byFaults((*faults).strikePause),
	"membership":         byOperators((*operators).strikeMembership),
	"reconfig-crash":     byOperators((*operators).strikeMembership),
	"transfer":           byFaults((*faults).strikeTransfer),
	"last-word":          byFaults((*faults).strikeLastWord),
	"narrow":             byFaults((*faults).strikeNarrow),
	"move":               byAddresses((*addressFaults).strikeMove),
	"mistype":            byAddresses((*addressFaults).strikeMistype),
	"overwrite":          byFaults((*faults).strikeOverwrite),
	"auth":               (*World).strikeUsers,
	"strangers":          (*World).strikeStrangers,
	"impatient":          (*World).strikeImpatient,
	"upgrade":            byFaults((*faults).strikeUpgrade),
	"jobs":               byOperators((*operators).strikeJobs),
	"dates":              byOperators((*operators).strikeDates),
	"wipe":               byDisks((*diskFaults).strikeWipe),
	"roll-back":          byDisks((*diskFaults).strikeRollBack),
	"forget":             byDisks((*diskFaults).strikeForget),
	"clone":              byDisks((*diskFaults).strikeClone),
	"wrong-address":      byDisks((*diskFaults).strikeAddress),
	"found":              byDisks((*diskFaults).strikeFounding),
	"wipe-most":          byDisks((*diskFaults).strikeWipeMost),
	"recover":            byDisks((*diskFaults).strikeRecover),
	"recover-apart":      byDisks((*diskFaults).strikeRecoverApart),
	"recover-by-mistake": byDisks((*diskFaults).strikeMistake),
	"join":               byDisks((*diskFaults).strikeJoin),
	"other-history":      byDisks((*diskFaults).strikeOtherHistory),
}

// Nemeses lists all kinds of faults, for the command line.
func Nemeses() []plan.Nemesis { return plan.Nemeses() }

// unleash makes a nemesis strike repeatedly, with exponential pauses, until the first phase is over. A strike undoes itself
// after a while.
func (w *World) unleash(n *plan.Nemesis, rng *rand.Rand) {
	strike := strikes[n.Name]
	if strike == nil {
		return
	}
	var again func()
	again = func() {
		if w.run.calm {
			return
		}
		strike(w)
		w.run.After(dice.Exponential(rng, w.run.plan.Gaps[n.Name]), again)
	}
	w.run.After(dice.Exponential(rng, w.run.plan.Gaps[n.Name]), again)
}

// faults are the faults of power, network, disks and time.
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

func (f *faults) strikeHungStore() {
	if h := f.cluster.victim(); h != nil {
		f.run.struck("hung-store", fmt.Sprint(h.slot))
		h.hung = f.run.Now() + dice.Between(f.rng, time.Second, 15*time.Second)
	}
}

// strikeFullDisk makes a member fail for good, as it must; the operator frees the disk and starts the member again.
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

// strikeOverwrite makes disks write entries that a new leader replaces meanwhile: the leader and another member, whose disks
// are very slow, are cut off from the others, which elect another leader and go on writing; then the cut heals.
func (f *faults) strikeOverwrite() {
	leader, rest := f.cluster.led()
	if leader == nil || len(rest) < 2 {
		return
	}
	at := f.rng.IntN(len(rest))
	apart := []*host{leader, rest[at]}
	if len(rest) == 2 { // two would be a majority
		apart = apart[:1]
	}
	rest = slices.DeleteFunc(rest, func(h *host) bool { return slices.Contains(apart, h) })
	f.run.struck("overwrite", fmt.Sprintf("of %d, one of %d", leader.slot, len(apart)))
	raft := &f.run.plan.Raft
	patience := time.Duration(raft.ElectionTicks) * f.run.plan.Tick
	cut := dice.Between(f.rng, 2*patience, 4*patience)
	f.cluster.net.cut(apart, rest, dice.Chance(f.rng, 0.5))
	f.cluster.net.cut(rest, apart, dice.Chance(f.rng, 0.5))
	for _, h := range apart {
		h.slow = 2 * cut
	}
	f.run.After(cut, func() {
		f.cluster.net.heal(apart, rest)
		f.cluster.net.heal(rest, apart)
	})
	f.run.After(3*cut, func() {
		for _, h := range apart {
			h.slow = 0
		}
	})
}

// strikeLastWord leaves decisions of the fast path with few members: one member has the leader's answers and no other member
// has the leader's entries.
func (f *faults) strikeLastWord() {
	leader, rest := f.cluster.led()
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

// strikeNarrow makes some links, or all, narrow for a while, and changes their rate meanwhile.
func (f *faults) strikeNarrow() {
	links, what := f.someLinks()
	if len(links) == 0 {
		return
	}
	net, plan := f.cluster.net, f.run.plan
	rate := 1 << 10 << f.rng.IntN(9) // up to 256 KiB a second
	f.run.struck("narrow", fmt.Sprintf("%s, %d bytes a second", what, rate))
	// The real limit is 512 KiB, which take a second on a link of 4 Mbit/s and a tenth of it on one of 40.
	patience := time.Duration(plan.Raft.ElectionTicks) * plan.Tick
	heard := dice.Between(f.rng, patience/20, patience/2)
	set := func(rate int) {
		if f.run.calm {
			return
		}
		for _, l := range links {
			// No queue is full before its stream is crowded. Few messages are smaller than 64 bytes.
			crowded := min(plan.Queue.Bytes, 64*plan.Queue.Messages) / 2
			net.narrow(l, rate, min(crowded, int(heard)*rate/int(time.Second)))
		}
	}
	set(rate)
	lasts := dice.Between(f.rng, time.Second, 15*time.Second)
	for range f.rng.IntN(4) {
		next := max(1<<9, rate<<4>>f.rng.IntN(9))
		f.run.After(dice.Between(f.rng, 0, lasts), func() { set(next) })
	}
	f.run.After(lasts, func() { set(0) })
}

// someLinks draws the links that become narrow: all, those from or to one host, or one or both directions between two hosts.
func (f *faults) someLinks() (links []*link, what string) {
	hosts := f.cluster.present()
	if len(hosts) < 2 {
		return nil, ""
	}
	at := f.rng.IntN(len(hosts))
	one, other := hosts[at], hosts[(at+1)%len(hosts)]
	kind := f.rng.IntN(5)
	for _, a := range hosts {
		for _, b := range hosts {
			there, back := a == one, b == one
			switch {
			case a == b:
			case kind == 0, kind == 1 && there, kind == 2 && back, kind == 3 && there && b == other,
				kind == 4 && (there && b == other || back && a == other):
				links = append(links, f.cluster.net.link(a.slot, b.slot))
			}
		}
	}
	names := []string{"all", "from %d", "to %d", "%d to %d", "%d and %d"}
	switch kind {
	case 0:
		return links, names[0]
	case 1, 2:
		return links, fmt.Sprintf(names[kind], one.slot)
	}
	return links, fmt.Sprintf(names[kind], one.slot, other.slot)
}
