package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/dice"
)

const (
	maxHosts    = 24 // machines that ever are
	maxVoters   = 7
	promoteScan = 300 * time.Millisecond
)

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
	request := w.drawChange(&known.Config)
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
	done := func(_ kv.Result, err error) {
		if err == nil && !request.Abort {
			asked.after(0, asked.tellDecided)
		}
	}
	if _, err := asked.node.ChangeConfig(request, completion(done)); err == nil {
		asked.wake(w.plan.loop)
	}
}

// tellDecided is what the real member does when it has applied the first half of a change by joint-early: it asks whether
// the change was turned back meanwhile, and if not, says that it is decided.
func (h *host) tellDecided() {
	before := h.data.Machine.SnapshotMeta()
	if before.Protocol != consensus.ProtocolJointEarly || !before.Config.IsJoint() {
		return
	}
	h.Read(func() {
		if now := h.data.Machine.SnapshotMeta(); now.ConfigID == before.ConfigID {
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

// drawChange draws one of the things that operators do, or a mix of steps that none would think of.
func (w *World) drawChange(c *consensus.Config) consensus.ChangeRequest {
	request := consensus.ChangeRequest{Protocol: dice.Pick(w.rng, w.plan.protocols...)}
	switch draw := w.rng.IntN(20); {
	case draw < 3:
		request.Steps = w.addSteps(c, consensus.ChangeAddLearner, 1+w.rng.IntN(3))
	case draw == 3:
		request.Steps = w.addSteps(c, consensus.ChangeAddVoter, dice.Pick(w.rng, 1, 1, 2, maxVoters-len(c.Voters)))
	case draw < 8:
		request.Steps = w.someSteps(consensus.ChangePromote, c.Learners, maxVoters-len(c.Voters))
	case draw < 11:
		request.Steps = w.replaceSteps(c)
	case draw < 13:
		request.Steps = w.someSteps(consensus.ChangeRemove, c.IDs(), len(c.Members))
	case draw == 13:
		request.Steps = w.someSteps(consensus.ChangeDemote, c.Voters, 2)
	case draw == 14:
		request.Steps = w.updateSteps(c)
	case draw == 15: // everybody is replaced
		request.Steps = append(steps(consensus.ChangePromote, c.Learners), steps(consensus.ChangeRemove, c.Voters)...)
	case draw == 16 && len(c.Voters) > 3: // five to three, seven to three
		request.Steps = steps(consensus.ChangeRemove, w.shuffled(c.Voters)[3:])
	case draw == 17: // a leader that takes itself out
		for _, h := range w.up() {
			if h.leading {
				kind := dice.Pick(w.rng, consensus.ChangeRemove, consensus.ChangeDemote)
				request.Steps = steps(kind, []consensus.MemberID{h.id})
			}
		}
	case draw == 18:
		request.Steps = w.mixedSteps(c)
	}
	if len(request.Steps) == 0 {
		request.Steps = w.oddSteps(c)
	}
	return request
}

func steps(kind consensus.ChangeKind, ids []consensus.MemberID) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for _, id := range ids {
		list = append(list, consensus.ChangeStep{Kind: kind, Member: describeMember(int(id) - 1)})
	}
	return list
}

func (w *World) shuffled(ids []consensus.MemberID) []consensus.MemberID {
	ids = slices.Clone(ids)
	w.rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// someSteps does one thing to one member or several, at most a number.
func (w *World) someSteps(kind consensus.ChangeKind, ids []consensus.MemberID, most int) []consensus.ChangeStep {
	most = min(most, len(ids))
	if most < 1 {
		return nil
	}
	n := dice.Pick(w.rng, 1, 1, 2, most)
	return steps(kind, w.shuffled(ids)[:min(n, most)])
}

// addSteps adds machines that start about now, with nothing on their disks.
func (w *World) addSteps(c *consensus.Config, kind consensus.ChangeKind, n int) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for range n {
		if len(w.list) >= maxHosts || len(c.Voters)+len(list) >= maxVoters {
			break
		}
		h := w.addHost(w.rng.Uint64(), consensus.MemberID(len(w.list)+1), consensus.SnapshotMeta{})
		h.startAfter(dice.Between(w.rng, 0, 2*time.Second))
		list = append(list, steps(kind, []consensus.MemberID{h.id})...)
		list[len(list)-1].Member.Promote = kind == consensus.ChangeAddLearner && dice.Chance(w.rng, 0.4)
	}
	return list
}

// replaceSteps puts learners, or machines that nobody knows yet, in the place of voters.
func (w *World) replaceSteps(c *consensus.Config) []consensus.ChangeStep {
	n := min(1+w.rng.IntN(2), len(c.Voters))
	list := w.someSteps(consensus.ChangePromote, c.Learners, n)
	if len(list) == 0 {
		list = w.addSteps(c, dice.Pick(w.rng, consensus.ChangeAddLearner, consensus.ChangeAddVoter), n)
	}
	out := dice.Pick(w.rng, consensus.ChangeRemove, consensus.ChangeRemove, consensus.ChangeDemote)
	return append(list, steps(out, w.shuffled(c.Voters)[:min(n, max(len(list), 1))])...)
}

func (w *World) updateSteps(c *consensus.Config) []consensus.ChangeStep {
	list := w.someSteps(consensus.ChangeUpdate, c.IDs(), 3)
	for i := range list {
		list[i].Member.PeerURLs = []string{fmt.Sprintf("http://10.1.%d.%d:2380", w.rng.IntN(250), list[i].Member.ID)}
	}
	return list
}

func (w *World) mixedSteps(c *consensus.Config) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for _, id := range w.shuffled(c.IDs()) {
		switch w.rng.IntN(5) {
		case 0:
			list = append(list, steps(consensus.ChangeRemove, []consensus.MemberID{id})...)
		case 1:
			kind := consensus.ChangeDemote
			if c.IsLearner(id) {
				kind = consensus.ChangePromote
			}
			list = append(list, steps(kind, []consensus.MemberID{id})...)
		}
	}
	return append(list, w.addSteps(c, consensus.ChangeAddLearner, w.rng.IntN(2))...)
}

// oddSteps asks for what cannot be: a member that was removed or never was, or a promotion of a voter.
func (w *World) oddSteps(c *consensus.Config) []consensus.ChangeStep {
	var strangers []consensus.MemberID
	for _, h := range w.list {
		if !c.Contains(h.id) {
			strangers = append(strangers, h.id)
		}
	}
	kind := dice.Pick(w.rng, consensus.ChangeAddLearner, consensus.ChangePromote, consensus.ChangeRemove,
		consensus.ChangeAddVoter)
	if list := w.someSteps(kind, strangers, 1); len(list) > 0 {
		return list
	}
	return w.someSteps(consensus.ChangePromote, c.Voters, 1)
}

// promote is what a leader does by itself: it makes voters of learners that were added as such and have caught up.
func (h *host) promote() {
	h.after(promoteScan, h.promote)
	if !h.leading || h.w.calm {
		return
	}
	status := h.node.Replica().Status()
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
		if h.leading && dice.Chance(w.rng, 0.1) && !w.calm {
			w.After(0, func() { w.abort(h) }) // too late for most protocols
		}
	case raft.ConfigUndone:
		w.counts.Undone++
	case raft.ConfigSettled:
		for _, id := range h.suite.Settled(h.id, e.ID, h.node.Replica().Term()) {
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
