package sim

import (
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/places"
	"github.com/quorate/quorate/internal/sim/users"
)

// target implements workload.Target for a host.
type target struct{ h *host }

// serves reports whether the member answers clients.
func (h *host) serves() bool {
	if !h.alive || h.proc == nil || h.impostor != "" { // no client connects to an impostor
		return false
	}
	return !h.run.calm || h.suite.CommittedConfig().Contains(h.id) // else a client would wait for ever
}

// Life implements workload.Target.
func (t target) Life() int {
	if !t.h.serves() {
		return 0
	}
	return t.h.life
}

// Propose implements workload.Target.
func (t target) Propose(by *users.Person, command *kv.Command, done func(kv.Result, error)) (abandon func()) {
	if by != nil {
		return t.h.gate.Propose(by, command, done)
	}
	return t.h.proc.Clients.Propose(command, done)
}

// ID implements workload.Target.
func (t target) ID() consensus.MemberID { return t.h.id }

// Endpoint implements workload.Target. Machines that move keep their client endpoint.
func (t target) Endpoint() string { return places.ClientURL(t.h.home) }

// listTakes is how long a list of members takes to arrive.
const listTakes = 2 * time.Millisecond

// List implements workload.Target.
func (t target) List(linearizable bool, done func(cluster uint64, members []nativeclient.Place)) {
	h, life := t.h, t.h.life
	answer := func() {
		config, _ := h.proc.Data.Machine.Config()
		var members []nativeclient.Place
		for i := range config.Members {
			m := &config.Members[i]
			place := nativeclient.Place{ID: uint64(m.ID), Learner: config.IsLearner(m.ID)}
			if other := h.cluster.hosts[m.ID]; other != nil && other.life > 0 {
				place.Endpoints = []string{target{other}.Endpoint()}
			}
			members = append(members, place)
		}
		h.run.After(listTakes, func() { done(uint64(clusterID), members) })
	}
	h.run.After(listTakes, func() {
		switch {
		case !h.serves() || h.life != life:
		case linearizable:
			h.proc.Clients.Read(answer)
		default:
			answer()
		}
	})
}

// Read implements workload.Target.
func (t target) Read(done func()) { t.h.proc.Clients.Read(done) }

// Range implements workload.Target.
func (t target) Range(op *kv.RangeOp) (kv.RangeResult, kv.Revision, error) {
	return t.h.proc.Data.Machine.Store().Range(op)
}

// Hub implements workload.Target.
func (t target) Hub() *watch.Hub { return t.h.proc.Hub() }

// RangeBy implements workload.Target.
func (t target) RangeBy(
	by *users.Person, op *kv.RangeOp, linearizable bool, done func(kv.RangeResult, kv.Revision, error),
) {
	t.h.gate.Range(by, op, linearizable, done)
}

// ReadTxnBy implements workload.Target.
func (t target) ReadTxnBy(
	by *users.Person, op *kv.TxnOp, linearizable bool, done func([]kv.RangeResult, kv.Revision, error),
) {
	t.h.gate.ReadTxn(by, op, linearizable, done)
}

// LogIn implements workload.Target.
func (t target) LogIn(by *users.Person, password string, done func(hash string, err error)) {
	t.h.gate.LogIn(by, password, done)
}

// Renew implements workload.Target: it asks the leader, whichever member it is, as the real member does.
func (t target) Renew(by *users.Person, id kv.LeaseID, done func(ttlSeconds int64, err error)) {
	if by == nil {
		t.renew(id, done)
		return
	}
	t.h.gate.Renew(by, id, func(err error) {
		if err != nil {
			done(0, err)
			return
		}
		t.renew(id, done)
	})
}

func (t target) renew(id kv.LeaseID, done func(ttlSeconds int64, err error)) {
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
