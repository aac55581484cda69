package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// longestPause is how long a member may make no offers because few of its offers were accepted: ten seconds, and the time to
// its next attempt.
const longestPause = 12 * time.Second

// offersResume writes through each member that gains by offers, until it has made one. A pause must end.
func (w *World) offersResume() bool {
	for _, h := range w.cluster.members() {
		if h.serves() && !w.offersAt(h) {
			return false
		}
	}
	return !w.run.suite.Failed()
}

func (w *World) offersAt(h *host) bool {
	life, before := h.life, h.proc.Node.Replica().FastCounts().Tried
	end := w.run.Now() + longestPause
	// After a violation time stands still: this loop would never end.
	for n := 0; !w.run.suite.Failed() && h.serves() && h.life == life && h.proc.GainsByOffers(); n++ {
		if h.proc.Node.Replica().FastCounts().Tried > before {
			return true
		}
		if w.run.Now() >= end {
			w.run.suite.Report("offers-resume", fmt.Sprintf(
				"member %v, far from its leader, has offered none of %d writes in %v", h.id, n, longestPause))
			return false
		}
		command := kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "resume/%v/%d", h.id, n)}}
		h.proc.Clients.Propose(&command, func(kv.Result, error) {})
		w.runUntil(w.run.Now()+200*time.Millisecond, nil)
	}
	return !w.run.suite.Failed()
}
