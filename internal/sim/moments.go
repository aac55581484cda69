package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/member/moments"
	"github.com/quorate/quorate/internal/sim/check"
)

// momentScan is how often a leader looks whether a moment is due, momentEvery how often one is: the worlds are short.
const (
	momentScan  = 200 * time.Millisecond
	momentEvery = time.Second
)

// keepMoments notes the time on the leader, as package member does.
func keepMoments(h *host) {
	if !h.run.plan.Moments {
		return
	}
	teller := moments.Teller{Every: momentEvery}
	waits := false
	clock, read := h.clock(), h.run.Now()
	var look func()
	look = func() {
		if !h.serves() || !h.leads() {
			teller.Rest()
		} else if !waits {
			machine := h.proc.Data.Machine
			view := &moments.View{Self: h.id, Active: machine.ActiveLevel(), Revision: machine.Store().Revision(),
				Noted: machine.Moments()}
			if !h.run.broken.EarlyClock {
				clock, read = h.clock(), h.run.Now()
			}
			if command, due := teller.Look(view, h.monotonic(), clock); due {
				waits = true
				h.suite.Told(command.Moment, read)
				h.proc.Clients.Propose(&command, func(kv.Result, error) { waits = false })
			}
		}
		clock, read = h.clock(), h.run.Now()
		h.after(momentScan, look)
	}
	look()
}

// checkPast compares by whom and when, as the store of a member says, versions were written.
func (h *host) checkPast() {
	machine := h.proc.Data.Machine
	store := machine.Store()
	h.suite.Timed(h.id, machine.Applied().Index, store.CompactRevision(), machine.Moments())
	for _, key := range h.suite.Model().Keys() {
		page, err := store.Versions(&mvcc.VersionQuery{Key: []byte(key), Authors: true, Limit: 1 << 20, Bytes: 1 << 30}, free{})
		if err != nil {
			h.suite.Report("state-machine", fmt.Sprintf("member %v cannot read the versions of %q: %v", h.id, key, err))
			return
		}
		versions := make([]check.Written, 0, len(page.Versions))
		for i := range page.Versions {
			versions = append(versions, check.Written{Revision: page.Versions[i].ModRevision, By: page.Versions[i].By})
		}
		h.suite.Authored(h.id, key, store.CompactRevision(), versions)
	}
}

// free is an account that counts nothing.
type free struct{}

func (free) Take(int) error { return nil }
func (free) Walk(int) error { return nil }
func (free) Release()       {}
