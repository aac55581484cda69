package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	maxHosts    = 24 // machines that ever are
	maxVoters   = 7
	promoteScan = 300 * time.Millisecond
)

// changes draws what operators ask for.
func (w *World) changes() *changes.Drawer {
	d := &changes.Drawer{Rng: w.rng, Protocols: w.plan.protocols, MaxVoters: maxVoters, Add: w.addAnother}
	for _, h := range w.list {
		d.Known = append(d.Known, h.id)
		if h.alive && h.leads() && h.impostor == "" {
			d.Leading = append(d.Leading, h.id)
		}
	}
	return d
}

// addAnother adds a machine that starts about now, with nothing on its disk.
func (w *World) addAnother() (consensus.Member, bool) {
	if len(w.list) >= maxHosts {
		return consensus.Member{}, false
	}
	h := w.addHost(w.rng.Uint64(), consensus.MemberID(len(w.list)+1), consensus.SnapshotMeta{})
	h.startAfter(dice.Between(w.rng, 0, 2*time.Second))
	return changes.Describe(h.id), true
}

// strikeMembership asks some member for a change that makes sense, or not, in the configuration that it knows.
func (w *World) strikeMembership() {
	asked := w.anybody()
	if asked == nil || w.lost() != nil { // who has lost a member replaces it first
		return
	}
	known, ok := w.configs[asked.id]
	if !ok || len(known.Config.Voters) == 0 {
		return
	}
	request := w.changes().Draw(&known.Config)
	switch draw := w.rng.IntN(10); {
	case draw < 3:
		request.Expected = known.ID
	case draw == 3:
		request.Expected = w.pastIDs[w.rng.IntN(len(w.pastIDs))]
	}
	if request.Protocol == consensus.ProtocolSingle && dice.Chance(w.rng, 0.7) {
		request.Steps = request.Steps[:1]
	}
	w.ask(asked, request)
}

func (w *World) anybody() *host {
	if up := w.up(); len(up) > 0 {
		return up[w.rng.IntN(len(up))]
	}
	return nil
}

func (w *World) ask(asked *host, request consensus.ChangeRequest) {
	w.struck("membership", fmt.Sprintf("%s at %d", describeRequest(&request), asked.slot))
	done := func(err error) {
		if err == nil && !request.Abort {
			asked.after(0, asked.tellDecided)
		}
	}
	_ = asked.proc.Clients.Change(request, done) // whatever it says
}

// tellDecided is what the real member does when it has applied the first half of a change by joint-early: it asks whether
// the change was turned back meanwhile, and if not, says that it is decided.
func (h *host) tellDecided() {
	before := h.proc.Data.Machine.SnapshotMeta()
	if before.Protocol != consensus.ProtocolJointEarly || !before.Config.IsJoint() {
		return
	}
	h.proc.Clients.Read(func() {
		if now := h.proc.Data.Machine.SnapshotMeta(); now.ConfigID == before.ConfigID {
			h.suite.Decided(h.id, now.ConfigID)
		}
	})
}

func describeRequest(r *consensus.ChangeRequest) string {
	if r.Abort {
		return "abort"
	}
	text := r.Protocol.String()
	for i := range r.Steps {
		text += fmt.Sprintf(" %v %d", r.Steps[i].Kind, r.Steps[i].Member.ID)
	}
	if r.Expected != (consensus.ConfigID{}) {
		text += fmt.Sprintf(" expecting %v", r.Expected)
	}
	return text
}

// promote is what a leader does by itself: it makes voters of learners that were added as such and have caught up.
func (h *host) promote() {
	h.after(promoteScan, h.promote)
	if !h.leads() || h.w.calm {
		return
	}
	if h.w.plan.jobs {
		h.promoteReady()
		return
	}
	status := h.proc.Node.Replica().Status()
	for _, p := range status.Progress {
		m, _ := status.Config.Member(p.ID)
		if !m.Promote || !status.Config.IsLearner(p.ID) || !p.CaughtUp || len(status.Config.Voters) >= maxVoters {
			continue
		}
		request := consensus.ChangeOne(consensus.ChangePromote, consensus.Member{ID: p.ID})
		request.Protocol = dice.Pick(h.w.rng, h.w.plan.protocols...)
		h.w.ask(h, request)
		return
	}
}

// configEvent counts what becomes of changes, and lets the nemeses act on them.
func (h *host) configEvent(event raft.Event) {
	w := h.w
	switch e := event.(type) {
	case raft.ConfigProposed:
		if e.Joint && dice.Chance(w.rng, 0.25) && !w.calm {
			late := dice.Pick(w.rng, 0, 5*time.Millisecond, 30*time.Millisecond)
			w.After(dice.Between(w.rng, 0, late), func() { w.abort(h) })
		}
		w.hitChange(h)
	case raft.ConfigCommitted:
		if h.leads() && dice.Chance(w.rng, 0.1) && !w.calm {
			w.After(0, func() { w.abort(h) }) // too late for most protocols
		}
	case raft.ConfigUndone:
		w.counts.Undone++
	case raft.ConfigSettled:
		for _, id := range h.suite.Settled(h.id, e.ID, h.proc.Node.Replica().Term()) {
			if retired := w.hosts[id]; w.plan.switchOff && retired != nil {
				w.After(0, retired.retire) // the operator has waited for just that
			}
		}
	}
}

// abort asks for the way back from a joint configuration, the leader itself or somebody else.
func (w *World) abort(leader *host) {
	asked := leader
	if dice.Chance(w.rng, 0.5) {
		asked = w.anybody()
	}
	if asked != nil && asked.alive && !w.calm {
		w.ask(asked, consensus.ChangeRequest{Abort: true})
	}
}
