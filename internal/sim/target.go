package sim

import (
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/sim/shell"
	"github.com/quorate/quorate/internal/sim/workload"
)

// target is a host as clients of package workload see it.
type target struct{ h *host }

// serves reports whether the member answers clients.
func (h *host) serves() bool {
	if !h.alive || h.proc == nil || h.impostor != "" { // clients are those of the cluster
		return false
	}
	return !h.run.calm || h.suite.CommittedConfig().Contains(h.id) // else it answers nobody, and no client waits for ever
}

// Life implements workload.Target.
func (t target) Life() int {
	if !t.h.serves() {
		return 0
	}
	return t.h.life
}

// Propose implements workload.Target.
func (t target) Propose(command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	return t.h.proc.Clients.Propose(command, done)
}

// ProposeFor implements workload.Target.
func (t target) ProposeFor(
	key []byte, session, sequence uint64, command *kv.Command, done func(kv.Result, error),
) (abandon func()) {
	return t.h.proc.Clients.ProposeFor(t.owner(key).Proposal(session, sequence), command, done)
}

// owner is the client that has shown a key at the begin of its stream.
func (t target) owner(key []byte) clients.Owner {
	owner, _ := clients.OwnerOf(key, t.h.run.broken.Owners) // the keys of package workload are whole
	return owner
}

// whole completes a result that a client gets after it has travelled, if this member can by then.
func (t target) whole(command *kv.Command, r kv.Result, err error) (kv.Result, error) {
	if !t.h.serves() {
		return shell.Cut(r, err)
	}
	return t.h.proc.Clients.Whole(command, r, err)
}

// Offer implements workload.Target.
func (t target) Offer(key []byte, session, sequence uint64, command *kv.Command, on workload.TermConfig,
	done func(kv.Result, error),
) (abandon func()) {
	h, owner := t.h, t.owner(key)
	id := owner.Proposal(session, sequence)
	message := consensus.Message{
		Kind: consensus.MsgRecord, From: owner.ID, To: h.id, Term: on.Term, Config: on.Config,
		Proposals: []consensus.Proposal{{ID: id, Kind: consensus.EntryCommand, Payload: command.Append(nil)}},
	}
	var told *shell.Answer
	if done != nil {
		message.Kind = consensus.MsgFastPropose
		told = &shell.Answer{Tell: func(r kv.Result, err error) {
			h.cluster.net.toClient(func() { done(t.whole(command, r, err)) })
		}}
	}
	offered, over := h.proc.Clients, false
	h.cluster.net.fromClient(h, func() {
		if told == nil || !over {
			offered.Offered(&message, id, command, told)
		}
	})
	return func() {
		over = true
		if told != nil {
			offered.Abandon(id, told)
		}
	}
}

// TermConfig implements workload.Target.
func (t target) TermConfig() workload.TermConfig {
	core := t.h.proc.Node.Replica()
	inForce := core.InForce()
	return workload.TermConfig{
		Leader: core.Leader(), Term: core.Term(), Config: inForce.ID, Voters: inForce.Config.Voters,
	}
}

// ID implements workload.Target.
func (t target) ID() consensus.MemberID { return t.h.id }

// NextSession implements workload.Target.
func (t target) NextSession(client consensus.MemberID, above uint64) consensus.SessionID {
	return t.h.proc.Data.Machine.NextClientSession(client, above)
}

// Read implements workload.Target.
func (t target) Read(done func()) { t.h.proc.Clients.Read(done) }

// Range implements workload.Target.
func (t target) Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error) {
	return t.h.proc.Data.Machine.Store().Range(op)
}

// Hub implements workload.Target.
func (t target) Hub() *watch.Hub { return t.h.proc.Hub() }

// Renew implements workload.Target: it asks the leader, wherever it is, as the real member does.
func (t target) Renew(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	h := t.h
	leader := h.proc.Node.Replica().Leader()
	switch {
	case leader == h.id:
		h.proc.Clients.RenewLease(id, done)
	case leader != consensus.NoMember && h.cluster.hosts[leader] != nil:
		peer := h.cluster.hosts[leader]
		h.cluster.net.call(h, peer, func(answer func(func())) {
			peer.proc.Clients.RenewLease(id, func(ttl int64, err error) { answer(func() { done(ttl, err) }) })
		})
	}
}
