package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/sim/dice"
)

// hitChange lets the nemesis reconfig-crash strike in the middle of the change that a leader has just logged.
func (w *World) hitChange(leader *host) {
	if !w.plan.hits || w.calm || dice.Chance(w.rng, 0.4) {
		return
	}
	delay := dice.Pick(w.rng, 2*time.Millisecond, 10*time.Millisecond, 100*time.Millisecond)
	w.After(dice.Between(w.rng, 0, delay), func() {
		if leader.alive && !w.calm && w.suite.Changing(leader.id) {
			w.blow(leader)
		}
	})
}

// blow takes away, for a while, a leader in mid-change, or those who are to join, or the way between old and new.
func (w *World) blow(leader *host) {
	joining, rest := w.joining(leader)
	pause := func() time.Duration { return dice.Between(w.rng, 10*time.Millisecond, 5*time.Second) }
	draw := w.rng.IntN(10)
	if len(joining) == 0 {
		draw = w.rng.IntN(5)
	}
	w.struck("reconfig-crash", fmt.Sprintf("%d of leader %d, %d join", draw, leader.slot, len(joining)))
	switch {
	case draw < 3:
		leader.crash()
		leader.startAfter(pause())
	case draw == 3:
		w.isolate([]*host{leader}, without(w.present(), leader), pause())
	case draw == 4:
		leader.frozen = w.Now() + pause()
	case draw < 7:
		h := joining[w.rng.IntN(len(joining))]
		h.crash()
		h.startAfter(pause())
	case draw < 9:
		w.isolate(joining, rest, pause())
	default:
		for _, h := range w.up() {
			h.crash()
			h.startAfter(pause())
		}
	}
}

func (w *World) isolate(a, b []*host, d time.Duration) {
	notice := dice.Chance(w.rng, 0.5)
	w.net.cut(a, b, notice)
	w.net.cut(b, a, notice)
	w.After(d, func() {
		w.net.heal(a, b)
		w.net.heal(b, a)
	})
}

func without(hosts []*host, h *host) []*host {
	return slices.DeleteFunc(hosts, func(other *host) bool { return other == h })
}

// joining returns the hosts that vote by the change at the end of a leader's log and did not before it, and the others.
func (w *World) joining(leader *host) (joining, rest []*host) {
	voters := w.suite.Joining(leader.id)
	for _, h := range w.present() {
		if slices.Contains(voters, h.id) {
			joining = append(joining, h)
		} else {
			rest = append(rest, h)
		}
	}
	return joining, rest
}

// noteLoss counts leaders that are lost while a change is under way.
func (h *host) noteLoss() {
	if h.leads() && h.suite.Changing(h.id) {
		h.w.counts.LeadersLost++
	}
}

// noteInferred counts, at the end of a life, what it found committed by itself.
func (h *host) noteInferred() {
	c, fast := &h.w.counts, h.proc.Node.Replica().FastCounts()
	c.Inferred += h.proc.Node.Replica().Inferred()
	c.FastTried += fast.Tried
	c.Recovered += fast.Recovered
	c.Orphans += fast.Aborted
}

// tallyChanges counts, at the end, what the committed log holds.
func (w *World) tallyChanges() {
	w.counts.ByProtocol = map[string]uint64{}
	w.suite.EachChange(func(protocol consensus.Protocol, abort bool) {
		if abort {
			w.counts.Aborted++
			return
		}
		w.counts.ByProtocol[protocol.String()]++
	})
	w.counts.Settled = uint64(w.suite.SettledChanges())
}
