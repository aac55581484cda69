package sim

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member/raising"
)

const (
	// verdictLasts is for how long a verdict counts: as many looks as in a real member, roughly.
	verdictLasts = 2 * time.Second
	// A member finds something wrong for the first of findsEvery spans of this length, each one at another time.
	findsFor   = 6 * time.Second
	findsEvery = 7
	// soakScan is how often the world looks which time may count towards the next level.
	soakScan = 100 * time.Millisecond
	// soakMargin is by how much a moment may be counted with an earlier one: an interval between two looks.
	soakMargin = levelScan + soakScan
)

// finds is what a member's doctor finds at a moment of virtual time.
func finds(id consensus.MemberID, now time.Duration) string {
	if now < 0 || (uint64(now/findsFor)+uint64(id))%findsEvery != 0 {
		return ""
	}
	return "DISK_SLOW"
}

// hearVerdicts asks all members, if this one leads, what they find, and notes what they answer. Questions and answers may be
// lost.
func hearVerdicts(h *host, verdicts *raising.Verdicts) {
	if !h.serves() || !h.leads() {
		return
	}
	status := h.proc.Node.Replica().Status()
	ids, asked := status.Config.IDs(), h.monotonic()
	for _, id := range ids {
		other := h.cluster.net.at(h, id)
		judge := func() raising.Verdict { return raising.Verdict{Judged: true, Finding: finds(id, h.run.Now())} }
		switch {
		case id == h.id:
			verdicts.Note(ids, id, judge(), asked)
		case other != nil && other.id == id && h.run.plan.Asks:
			h.cluster.net.call(h, other, func(answer func(func())) {
				if said := judge(); other.serves() && h.run.Now() >= other.frozen {
					answer(func() { verdicts.Note(ids, id, said, asked) })
				}
			})
		case other != nil && other.id == id && other.serves():
			verdicts.Note(ids, id, judge(), asked)
		}
	}
}

// startSoaks begins to tell the law of soaks what it must know.
func (w *World) startSoaks() {
	w.run.suite.Soaks.Drift = w.run.plan.Drift
	if w.run.plan.Rises {
		w.run.After(soakScan, w.countSoak)
	}
}

// countSoak tells the law of soaks, from time to time, how much time may count: not that in which a member of the leader's
// configuration has found something for so long that no verdict of before is valid.
func (w *World) countSoak() {
	w.run.After(soakScan, w.countSoak)
	if !w.cluster.findsForLong() {
		w.run.suite.Soaks.Counted += soakScan
	}
}

// findsForLong reports whether there are leaders, all of which must know that a member finds something. A leader that is
// paused knows nothing.
func (c *cluster) findsForLong() (all bool) {
	now := c.run.Now()
	for _, h := range c.list {
		if !h.serves() || !h.leads() {
			continue
		}
		knows, status := false, h.proc.Node.Replica().Status()
		for _, id := range status.Config.IDs() {
			since, until := now-verdictLasts-soakMargin, now+soakMargin
			knows = knows || finds(id, since) != "" && finds(id, now) != "" && finds(id, until) != ""
		}
		if !knows || h.frozen+soakMargin > now {
			return false
		}
		all = true
	}
	return all
}
