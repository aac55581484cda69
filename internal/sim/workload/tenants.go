package workload

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/users"
)

// tenant takes a lease, attaches keys to it, keeps it alive for a while, and then revokes it or lets it expire.
type tenant struct {
	load     *Load
	id       int
	by       *users.Person // nil in a world without users
	count    int64
	lease    kv.LeaseID
	ttl      int64
	renewals int
	turn     int // answers to earlier turns are ignored
}

// begin grants a lease.
func (t *tenant) begin() {
	l := t.load
	if l.stopped {
		return
	}
	target := l.target()
	if target == nil {
		t.later(time.Second)
		return
	}
	t.count++
	t.turn++
	t.lease = kv.LeaseID(int64(t.id)<<32 | t.count)
	t.ttl = l.mix.LeaseTTL + l.rng.Int64N(6)
	t.renewals = l.rng.IntN(12)
	turn, begin, lease, ttl := t.turn, l.world.Now(), t.lease, t.ttl
	l.Ops++
	l.world.Operation(t.id, "grant")
	target.Propose(t.by, &kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: lease, TTLSeconds: ttl}}, func(r kv.Result, err error) {
		if err != nil || r.Err != nil {
			return
		}
		l.suite.Leases.Renewed(lease, begin, time.Duration(ttl)*time.Second)
		l.world.After(0, func() {
			if turn == t.turn {
				t.attach()
			}
		})
	})
	l.world.After(l.mix.Patience, func() {
		if turn == t.turn {
			t.begin()
		}
	})
}

func (t *tenant) later(d time.Duration) { t.load.world.After(d, t.begin) }

func (t *tenant) attach() {
	t.turn++
	l := t.load
	for i := range 1 + l.rng.IntN(3) {
		if target := l.target(); target != nil {
			l.Ops++
			key := fmt.Appendf(nil, "l/%d.%d", t.id, i)
			value := fmt.Appendf(nil, "t%d.%d.%d", t.id, t.count, i)
			target.Propose(t.by, &kv.Command{Put: &kv.PutOp{Key: key, Value: value, Lease: t.lease}}, func(kv.Result, error) {})
		}
	}
	t.keep()
}

// keep renews the lease every third of its time, as etcd's clients do, until its renewals are used up.
func (t *tenant) keep() {
	l := t.load
	t.turn++
	turn, lease := t.turn, t.lease
	if l.stopped || t.renewals == 0 {
		t.end()
		return
	}
	t.renewals--
	if target := l.target(); target != nil {
		begin := l.world.Now()
		l.Ops++
		target.Renew(t.by, lease, func(ttl int64, err error) {
			if err == nil {
				l.Renewals++
				l.suite.Leases.Renewed(lease, begin, time.Duration(ttl)*time.Second)
			}
		})
	}
	l.world.After(time.Duration(t.ttl)*time.Second/3, func() {
		if turn == t.turn {
			t.keep()
		}
	})
}

// end revokes one lease in three; the others expire.
func (t *tenant) end() {
	l := t.load
	if target := l.target(); target != nil && l.rng.IntN(3) == 0 {
		l.Ops++
		l.suite.Leases.Revoking(t.lease)
		target.Propose(t.by, &kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: t.lease}}, func(kv.Result, error) {})
	}
	t.later(time.Duration(l.rng.Int64N(int64(3 * time.Second))))
}
