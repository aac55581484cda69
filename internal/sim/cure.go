package sim

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/sim/changes"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	cureScan = 400 * time.Millisecond
	// cureLate is after how long the operator resets a member whose process never reports that it is lost, because no peer can
	// refuse it.
	cureLate = 8 * time.Second
	// denialLasts is how long a leader may take to detect that a follower denies entries that it acknowledged.
	denialLasts = 5 * time.Second
)

// operators look after the cluster: they change its members, and replace lost ones.
type operators struct {
	run     *run
	cluster *cluster

	mistakes []*host // hosts that were recovered by mistake
}

// lookAfter makes an operator notice, after a while, that a member has lost its disk or is an impostor.
func (o *operators) lookAfter(h *host) { o.run.After(cureScan, func() { o.cure(h) }) }

// cure is the operator's procedure for a lost disk: it repeats until another member has replaced the lost one.
func (o *operators) cure(h *host) {
	if h.gone || h.impostor == "" || o.run.refusing {
		if h.gone {
			o.run.counts.Cures++
		}
		return
	}
	o.lookAfter(h)
	o.judgeDenial(h)
	if !h.ended && o.run.Now()-h.since < cureLate {
		return
	}
	config := o.run.suite.CommittedConfig()
	if !config.Contains(h.id) {
		h.stopFounding()
		h.retire()
		return // gone: the next call counts it
	}
	if leader := o.cluster.leader(); leader != nil {
		if request := o.reset(h, leader); len(request.Steps) > 0 {
			o.run.suite.Jobs.Asked(&request)
			_ = leader.proc.Clients.Change(request, func(error) {}) // it is tried again
		}
	}
}

// judgeDenial checks that a leader refuses a follower that denies entries that it acknowledged to this leader.
func (o *operators) judgeDenial(h *host) {
	if h.witness != nil && h.alive && h.denied > 0 && o.run.Now()-h.denied > denialLasts &&
		o.cluster.net.mayHear(&h.credentials, h.witness) && o.cluster.net.link(h.slot, h.witness.slot).cuts == 0 {
		o.run.suite.Report("counted", fmt.Sprintf("leader %v goes on with member %v, which has denied for %v what it "+
			"acknowledged", h.witness.id, h.id, o.run.Now()-h.denied))
	}
}

// reset returns the next step by which another member replaces h, as the operator's job does it: a learner joins, catches up,
// and is promoted while h is removed.
func (o *operators) reset(h, leader *host) consensus.ChangeRequest {
	request := consensus.ChangeRequest{Protocol: dice.Pick(o.run.spoil, o.run.plan.Protocols...)}
	status := leader.proc.Node.Replica().Status()
	for h.heir != nil && h.heir.impostor != "" {
		h.heir = h.heir.heir // it has lost its disk, too
	}
	if h.heir == nil {
		h.heir = o.cluster.addHost(o.run.spoil.Uint64(), consensus.MemberID(len(o.cluster.list)+1), consensus.SnapshotMeta{})
		h.heir.startAfter(dice.Between(o.run.spoil, 0, time.Second))
	}
	id := h.heir.id
	switch {
	case !status.Config.Contains(id):
		request.Steps = changes.Steps(consensus.ChangeAddLearner, []consensus.MemberID{id})
		if dice.Chance(o.run.spoil, 0.5) {
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

// foundAgain is the operator's procedure after a broken founding: no member has data, so all begin anew with empty disks.
func (o *operators) foundAgain() {
	if !o.run.plan.Founds || o.run.refusing {
		return
	}
	o.run.After(cureScan, o.foundAgain)
	broken := false
	for _, h := range o.cluster.list {
		broken = broken || h.founding != nil && h.founding.verdict == identity.Broken
	}
	if !broken || o.cluster.anyData() {
		return
	}
	o.run.suite.Bindings.FoundAgain()
	for _, h := range o.cluster.list {
		h.empty()
		h.impostor, h.suite = "", o.run.suite
		h.startAfter(dice.Between(o.run.spoil, 0, time.Second))
	}
}
