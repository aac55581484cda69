package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/membership/autopilot"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	maxHosts    = 24 // total number of machines
	maxVoters   = 7
	promoteScan = 300 * time.Millisecond
)

// changes draws the changes that operators request.
func (o *operators) changes() *changes.Drawer {
	d := &changes.Drawer{Rng: o.run.rng, Protocols: o.run.plan.Protocols, MaxVoters: maxVoters, Add: o.addAnother}
	for _, h := range o.cluster.list {
		if h.id == consensus.NoMember {
			continue
		}
		d.Known = append(d.Known, h.id)
		if h.alive && h.leads() && h.impostor == "" {
			d.Leading = append(d.Leading, h.id)
		}
	}
	return d
}

// addAnother adds a machine that starts about now, with nothing on its disk.
func (o *operators) addAnother() (consensus.Member, bool) {
	if len(o.cluster.list) >= maxHosts {
		return consensus.Member{}, false
	}
	h := o.cluster.addHost(o.run.rng.Uint64(), consensus.MemberID(len(o.cluster.list)+1), consensus.SnapshotMeta{})
	h.startAfter(dice.Between(o.run.rng, 0, 2*time.Second))
	return changes.Describe(h.id), true
}

// strikeMembership requests a change from some member that makes sense, or does not, in the configuration that the member
// knows.
func (o *operators) strikeMembership() {
	asked := o.cluster.anybody()
	if asked == nil || o.cluster.lost() != nil { // a lost member is replaced first
		return
	}
	known, ok := o.cluster.configs[asked.id]
	if !ok || len(known.Config.Voters) == 0 {
		return
	}
	request := o.changes().Draw(&known.Config)
	switch draw := o.run.rng.IntN(10); {
	case draw < 3:
		request.Expected = known.ID
	case draw == 3:
		request.Expected = o.cluster.pastIDs[o.run.rng.IntN(len(o.cluster.pastIDs))]
	}
	if request.Protocol == consensus.ProtocolSingle && dice.Chance(o.run.rng, 0.7) {
		request.Steps = request.Steps[:1]
	}
	asked.ask(request)
}

// ask requests a change from this member.
func (h *host) ask(request consensus.ChangeRequest) {
	h.run.struck("membership", fmt.Sprintf("%s at %d", changes.Words(&request), h.slot))
	for i := range request.Steps {
		if of := h.cluster.hosts[request.Steps[i].Member.ID]; of != nil && request.Steps[i].Kind == consensus.ChangeUpdate {
			of.ordered = ""
		}
	}
	life := h.life
	if h.run.plan.Addresses && !request.Abort && // as a member does before it proposes a change of etcd's calls
		autopilot.NewAddresses(pilotPorts{h}, discard).Confirm(context.Background(), &request, membership.Lenient) != nil {
		return
	}
	h.suite.Jobs.Asked(&request)
	over := h.cluster.asked.Add(&request, func() bool { return h.alive && h.life == life })
	done := func(err error) {
		var refused *membership.RefusedError
		if err == nil || errors.As(err, &refused) || errors.Is(err, proposals.ErrNoLeader) { // else it may still happen
			over()
		}
		if err == nil && !request.Abort {
			h.after(0, h.tellDecided)
		}
	}
	if h.proc.Clients.Change(request, done) != nil {
		over()
	}
}

// tellDecided is what the real member does when it has applied the first entry of a change by joint-early: it asks whether the
// change was aborted meanwhile, and if not, reports it as decided.
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

// promote is what a leader does by itself: it promotes learners that were added to become voters and have caught up.
func (h *host) promote() {
	h.after(promoteScan, h.promote)
	if !h.leads() || h.run.calm {
		return
	}
	h.promoteReady()
}

// noticeChange counts the outcomes of changes, and makes operators and faults act in the middle of changes.
func (w *World) noticeChange(h *host, event raft.Event) {
	r := w.run
	switch e := event.(type) {
	case raft.ConfigProposed:
		if e.Joint && dice.Chance(r.rng, 0.25) && !r.calm {
			late := dice.Pick(r.rng, 0, 5*time.Millisecond, 30*time.Millisecond)
			r.After(dice.Between(r.rng, 0, late), func() { w.operators.abort(h) })
		}
		w.faults.hitChange(h)
	case raft.ConfigCommitted:
		if h.leads() && dice.Chance(r.rng, 0.1) && !r.calm {
			r.After(0, func() { w.operators.abort(h) }) // too late for most protocols
		}
	case raft.ConfigUndone:
		r.counts.Undone++
	case raft.ConfigSettled:
		for _, id := range h.suite.Settled(h.id, e.ID, h.proc.Node.Replica().Term()) {
			retired := w.cluster.hosts[id]
			if slices.Contains(w.cluster.survivors, retired) {
				continue // it was recovered from the quorum that has come back, and is of another epoch
			}
			if r.plan.SwitchOff && retired != nil {
				r.After(0, retired.retire) // the operator has waited for this
			}
		}
	}
}

// abort requests an abort of a joint change, from the leader itself or from another member.
func (o *operators) abort(leader *host) {
	asked := leader
	if dice.Chance(o.run.rng, 0.5) {
		asked = o.cluster.anybody()
	}
	if asked != nil && asked.alive && !o.run.calm {
		asked.ask(consensus.ChangeRequest{Abort: true})
	}
}
