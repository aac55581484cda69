package sim

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/sim/workload"
)

// A host is what clients of package workload talk to. Callbacks are events of their own: a Node calls its completions
// while it holds locks.

// Life implements workload.Target.
func (h *host) Life() int {
	if !h.alive || h.node == nil || h.impostor != "" { // clients are those of the cluster
		return 0
	}
	if h.w.calm && !h.suite.CommittedConfig().Contains(h.id) {
		return 0 // it answers nobody, and no client waits for ever
	}
	return h.life
}

// Propose implements workload.Target.
func (h *host) Propose(command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	life := h.life
	forget, err := h.node.Propose(command, completion(func(r kv.Result, err error) {
		h.after(0, func() { done(h.whole(command, r, err)) })
	}))
	if err != nil {
		h.after(0, func() { done(kv.Result{}, err) })
		return func() {}
	}
	h.wake(h.w.plan.loop)
	return func() {
		if h.alive && h.life == life {
			forget()
		}
	}
}

// ProposeFor implements workload.Target.
func (h *host) ProposeFor(
	id consensus.ProposalID, command *kv.Command, done func(kv.Result, error),
) (abandon func()) {
	life := h.life
	told := &answer{tell: func(r kv.Result, err error) {
		h.after(0, func() { done(h.whole(command, r, err)) })
	}}
	if err := h.node.ProposeFor(id, command, told); err != nil {
		h.after(0, func() { done(kv.Result{}, err) })
		return func() {}
	}
	h.wake(h.w.plan.loop)
	return func() {
		if h.alive && h.life == life {
			h.node.AbandonFor(id, told)
		}
	}
}

// whole completes a result as whoever answers does. Of one whose history is gone the client learns nothing.
func (h *host) whole(command *kv.Command, r kv.Result, err error) (kv.Result, error) {
	if err == nil && r.Left != nil {
		if h.Life() != 0 {
			h.recall(command, &r)
		}
		if r.Left != nil {
			return kv.Result{}, kv.ErrResultGone
		}
	}
	return r, err
}

// Offer implements workload.Target.
func (h *host) Offer(client consensus.MemberID, id consensus.ProposalID, command *kv.Command, on workload.TermConfig,
	done func(kv.Result, error),
) (abandon func()) {
	message := consensus.Message{
		Kind: consensus.MsgRecord, From: client, To: h.id, Term: on.Term, Config: on.Config,
		Proposals: []consensus.Proposal{{ID: id, Kind: consensus.EntryCommand, Payload: command.Append(nil)}},
	}
	var told *answer
	if done != nil {
		message.Kind = consensus.MsgFastPropose
		told = &answer{tell: func(r kv.Result, err error) { h.w.net.toClient(func() { done(h.whole(command, r, err)) }) }}
	}
	life, over := h.life, false
	h.w.net.fromClient(h, func() {
		switch {
		case told == nil:
		case over:
			return
		case h.node.Replica().Leader() != h.id:
			if err := h.node.ProposeFor(id, command, told); err != nil {
				told.tell(kv.Result{}, err)
			}
			h.wake(h.w.plan.loop)
			return
		default:
			if err := h.node.ExpectFor(id, command, told); err != nil {
				told.tell(kv.Result{}, err)
				return
			}
		}
		h.put(raft.Receive{Message: message})
	})
	return func() {
		over = true
		if told != nil && h.alive && h.life == life {
			h.node.AbandonFor(id, told)
		}
	}
}

// TermConfig implements workload.Target.
func (h *host) TermConfig() workload.TermConfig {
	core := h.node.Replica()
	inForce := core.InForce()
	return workload.TermConfig{
		Leader: core.Leader(), Term: core.Term(), Config: inForce.ID, Voters: inForce.Config.Voters,
	}
}

// ID implements workload.Target.
func (h *host) ID() consensus.MemberID { return h.id }

// answer is a Completion that can be told from others, to be abandoned.
type answer struct{ tell func(kv.Result, error) }

// Complete implements proposals.Completion.
func (a *answer) Complete(result kv.Result, err error) { a.tell(result, err) }

// NextSession implements workload.Target.
func (h *host) NextSession(client consensus.MemberID, above uint64) consensus.SessionID {
	return h.data.Machine.NextClientSession(client, above)
}

// Read implements workload.Target.
func (h *host) Read(done func()) {
	h.node.Read(func() { h.after(0, done) })
	h.wake(h.w.plan.loop)
}

// Range implements workload.Target.
func (h *host) Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error) {
	return h.data.Machine.Store().Range(op)
}

// Hub implements workload.Target.
func (h *host) Hub() *watch.Hub { return h.hub }

// Renew implements workload.Target: it asks the leader, wherever it is, as the real member does.
func (h *host) Renew(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	leader := h.node.Replica().Leader()
	switch {
	case leader == h.id:
		h.renewHere(id, done)
	case leader != consensus.NoMember && h.w.hosts[leader] != nil:
		peer := h.w.hosts[leader]
		h.w.net.call(h, peer, func(answer func(func())) {
			peer.renewHere(id, func(ttl int64, err error) { answer(func() { done(ttl, err) }) })
		})
	}
}

// renewHere renews a lease once a quorum has confirmed that this member leads.
func (h *host) renewHere(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	h.Read(func() {
		if !h.leading {
			return
		}
		ttl, err := h.data.Machine.Leases().Renew(id, h.clock())
		done(ttl, err)
	})
}
