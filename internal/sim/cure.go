package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	cureScan = 400 * time.Millisecond
	// cureLate is after how long the operator resets a member whose process never says that it is lost: nobody can tell it.
	cureLate = 8 * time.Second
	// denialLasts is how long a leader may take to find out that a follower denies what it acknowledged.
	denialLasts = 5 * time.Second
)

// cure is the operator who looks after a lost disk until another member has its place.
func (w *World) cure(h *host) {
	if h.gone || h.impostor == "" || w.refusing {
		if h.gone {
			w.counts.Cures++
		}
		return
	}
	w.After(cureScan, func() { w.cure(h) })
	w.judgeDenial(h)
	if !h.ended && w.Now()-h.since < cureLate {
		return
	}
	config := w.suite.CommittedConfig()
	if !config.Contains(h.id) {
		h.stopFounding()
		h.retire()
		return // gone: the next time it counts
	}
	if leader := w.leader(); leader != nil {
		if request := h.reset(leader); len(request.Steps) > 0 {
			_ = leader.proc.Clients.Change(request, func(error) {}) // it is tried again
		}
	}
}

// judgeDenial checks that a leader shuts out a follower that denies what it acknowledged to it.
func (w *World) judgeDenial(h *host) {
	if h.witness != nil && h.alive && h.denied > 0 && w.Now()-h.denied > denialLasts &&
		w.net.mayHear(&h.credentials, h.witness) && w.net.link(h.slot, h.witness.slot).cuts == 0 {
		w.suite.Report("counted", fmt.Sprintf("leader %v goes on with member %v, which has denied for %v what it acknowledged",
			h.witness.id, h.id, w.Now()-h.denied))
	}
}

// leader returns the member that leads in the highest term.
func (w *World) leader() (found *host) {
	for _, h := range w.up() {
		if h.leads() && (found == nil || h.proc.Node.Replica().Term() > found.proc.Node.Replica().Term()) {
			found = h
		}
	}
	return found
}

// reset is the next step by which another member takes the place of h, as the operator's job does it: a learner joins, catches
// up, and is promoted while h is removed.
func (h *host) reset(leader *host) consensus.ChangeRequest {
	w := h.w
	request := consensus.ChangeRequest{Protocol: dice.Pick(w.spoil, w.plan.protocols...)}
	status := leader.proc.Node.Replica().Status()
	for h.heir != nil && h.heir.impostor != "" {
		h.heir = h.heir.heir // it has lost its disk, too
	}
	if h.heir == nil {
		h.heir = w.addHost(w.spoil.Uint64(), consensus.MemberID(len(w.list)+1), consensus.SnapshotMeta{})
		h.heir.startAfter(dice.Between(w.spoil, 0, time.Second))
	}
	id := h.heir.id
	switch {
	case !status.Config.Contains(id):
		request.Steps = changes.Steps(consensus.ChangeAddLearner, []consensus.MemberID{id})
		if dice.Chance(w.spoil, 0.5) {
			request.Steps[0].Member.Storage = h.heir.storageID() // else it is bound at its first contact with a leader
		}
	case status.Config.IsLearner(id):
		for _, p := range status.Progress {
			if p.ID == id && p.CaughtUp {
				request.Steps = changes.Steps(consensus.ChangePromote, []consensus.MemberID{id})
			}
		}
		if len(request.Steps) > 0 && request.Protocol != consensus.ProtocolSingle {
			request.Steps = append(request.Steps, changes.Steps(consensus.ChangeRemove, []consensus.MemberID{h.id})...)
		}
	default:
		request.Steps = changes.Steps(consensus.ChangeRemove, []consensus.MemberID{h.id})
	}
	return request
}

// foundAgain is the operator of a founding that was broken: nobody has any data, so all begin anew with empty disks.
func (w *World) foundAgain() {
	if !w.plan.founds || w.refusing {
		return
	}
	w.After(cureScan, w.foundAgain)
	broken := false
	for _, h := range w.list {
		broken = broken || h.founding != nil && h.founding.verdict == identity.Broken
	}
	if !broken || w.anyData() {
		return
	}
	w.suite.Bindings.FoundAgain()
	for _, h := range w.list {
		h.empty()
		h.impostor, h.suite = "", w.suite
		h.startAfter(dice.Between(w.spoil, 0, time.Second))
	}
}

// anyData reports whether a first member has more on its disk than the record of a founding.
func (w *World) anyData() bool {
	for _, h := range w.list {
		if exists, err := datadir.Exists(h.options()); exists || err != nil {
			return true
		}
	}
	return false
}

// nobodyKnows reports whether no other first member has written down who is to be a member: whoever loses its disk then is as
// new as before.
func (w *World) nobodyKnows(h *host) bool {
	for _, other := range w.list {
		record, err := datadir.ReadFounding(other.options())
		if other != h && (err != nil || record.Bindings != nil) {
			return false
		}
	}
	return !w.anyData()
}

// lost returns a host whose place in the cluster nobody has taken yet.
func (w *World) lost() *host {
	config := w.suite.CommittedConfig()
	for _, h := range w.list {
		if h.impostor != "" && h.original == nil && !h.gone && config.Contains(h.id) {
			return h
		}
	}
	return nil
}
