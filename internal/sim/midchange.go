package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/dice"
)

// hitChange makes the nemesis reconfig-crash strike in the middle of the change that a leader has just logged.
func (f *faults) hitChange(leader *host) {
	if !f.run.plan.Hits || f.run.calm || dice.Chance(f.rng, 0.4) {
		return
	}
	delay := dice.Pick(f.rng, 2*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond)
	f.run.After(dice.Between(f.rng, 0, delay), func() {
		if leader.alive && !f.run.calm && f.run.suite.Changing(leader.id) {
			f.blow(leader)
		}
	})
}

// blow crashes, for a while, a leader in mid-change or the joining members, or cuts the links between old and new members.
func (f *faults) blow(leader *host) {
	joining, rest := f.joining(leader)
	pause := func() time.Duration { return dice.Between(f.rng, 10*time.Millisecond, 5*time.Second) }
	draw := f.rng.IntN(10)
	if len(joining) == 0 {
		draw = f.rng.IntN(5)
	}
	f.run.struck("reconfig-crash", fmt.Sprintf("%d of leader %d, %d join", draw, leader.slot, len(joining)))
	switch {
	case draw < 3:
		leader.crash()
		leader.startAfter(pause())
	case draw == 3:
		f.isolate([]*host{leader}, without(f.cluster.present(), leader), pause())
	case draw == 4:
		leader.frozen = f.run.Now() + pause()
	case draw < 7:
		h := joining[f.rng.IntN(len(joining))]
		h.crash()
		h.startAfter(pause())
	case draw < 9:
		f.isolate(joining, rest, pause())
	default:
		for _, h := range f.cluster.up() {
			h.crash()
			h.startAfter(pause())
		}
	}
}

func (f *faults) isolate(a, b []*host, d time.Duration) {
	notice := dice.Chance(f.rng, 0.5)
	f.cluster.net.cut(a, b, notice)
	f.cluster.net.cut(b, a, notice)
	f.run.After(d, func() {
		f.cluster.net.heal(a, b)
		f.cluster.net.heal(b, a)
	})
}

func without(hosts []*host, h *host) []*host {
	return slices.DeleteFunc(hosts, func(other *host) bool { return other == h })
}

// joining returns the hosts that vote by the last change in a leader's log and did not vote before it, and the others.
func (f *faults) joining(leader *host) (joining, rest []*host) {
	voters := f.run.suite.Joining(leader.id)
	for _, h := range f.cluster.present() {
		if slices.Contains(voters, h.id) {
			joining = append(joining, h)
		} else {
			rest = append(rest, h)
		}
	}
	return joining, rest
}

// noteLoss counts leaders that are lost while a change is pending.
func (h *host) noteLoss() {
	if h.leads() && h.suite.Changing(h.id) {
		h.run.counts.LeadersLost++
	}
}

// noteInferred adds, at the end of a life, the counts of its fast path.
func (h *host) noteInferred() {
	c, fast := &h.run.counts, h.proc.Node.Replica().FastCounts()
	c.Inferred += h.proc.Node.Replica().Inferred()
	c.FastTried += fast.Tried
	c.Recovered += fast.Recovered
	c.Orphans += fast.Aborted
}

// tallyChanges counts, at the end, the changes in the committed log.
func (w *World) tallyChanges() {
	w.run.counts.ByProtocol = map[string]uint64{}
	w.run.suite.EachChange(func(protocol consensus.Protocol, abort bool) {
		if abort {
			w.run.counts.Aborted++
			return
		}
		w.run.counts.ByProtocol[protocol.String()]++
	})
	w.run.counts.Settled = uint64(w.run.suite.SettledChanges())
}
