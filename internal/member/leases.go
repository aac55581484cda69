package member

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
)

// leaseScanInterval is how often a leader looks for expired leases; etcd's clients expect half a second or less.
const leaseScanInterval = 500 * time.Millisecond

// maxRevokesAtOnce bounds what one scan proposes.
const maxRevokesAtOnce = 500

// expireLeases is the goroutine that, on the leader, proposes to revoke what has expired. A lease ends only by that
// entry, the same on every member.
func (m *Member) expireLeases() error {
	return lookEvery(m.stopping, leaseScanInterval, func() {
		if m.Leader() == m.ID() {
			m.revokeExpired()
		}
	})
}

func (m *Member) revokeExpired() {
	term := m.lessorTerm.Load() // before the question: the answer is of this term or a later one
	machine, release := m.Machine()
	most := maxRevokesAtOnce
	if m.Corrupt() {
		most = 0 // its leases may be wrong; whoever leads next begins anew
	}
	expired := machine.Leases().Expired(m.options.Clock.Now(), most)
	release()
	done := make(chan struct{}, len(expired))
	for _, id := range expired {
		go func() {
			command := kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: id, Term: term}}
			if _, err := m.Propose(m.stopping, &command); err != nil && !errors.Is(err, ErrStopped) {
				m.logger.Warn("could not revoke an expired lease", "lease", int64(id), "err", err)
			}
			done <- struct{}{}
		}()
	}
	for range expired {
		<-done
	}
}

// RenewLease renews a lease wherever the leader is and returns its TTL in seconds. It needs no log entry: the leader
// proves by a quorum round that it still leads, and only it expires leases.
func (m *Member) RenewLease(ctx context.Context, id kv.LeaseID) (ttlSeconds int64, err error) {
	if m.Leader() == m.ID() {
		ttl, err := m.renewHere(ctx, id)
		if !leadershipMoved(err) {
			return ttl, err
		}
	}
	answer, err := m.callLeader(ctx, methodLeaseRenew, leaseQuestion{ID: id})
	return answer.TTLSeconds, err
}

// leadershipMoved reports whether an answer of this member only says that another one has to be asked, or this one again
// in a moment.
func leadershipMoved(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, lease.ErrNotPrimary)
}

func (m *Member) renewHere(ctx context.Context, id kv.LeaseID) (int64, error) {
	if err := m.ReadIndex(ctx); err != nil {
		return 0, err
	}
	if m.Leader() != m.ID() {
		return 0, ErrNotLeader
	}
	machine, release := m.Machine()
	defer release()
	return machine.Leases().Renew(id, m.options.Clock.Now())
}

// LeaseTimeToLive asks the leader for the remaining and the granted TTL in whole seconds.
func (m *Member) LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if m.Leader() == m.ID() {
		remaining, granted, err := m.timeToLiveHere(ctx, id)
		if !leadershipMoved(err) {
			return remaining, granted, err
		}
	}
	answer, err := m.callLeader(ctx, methodLeaseTTL, leaseQuestion{ID: id})
	return answer.TTLSeconds, answer.GrantedSeconds, err
}

func (m *Member) timeToLiveHere(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if err := m.ReadIndex(ctx); err != nil {
		return 0, 0, err
	}
	if m.Leader() != m.ID() {
		return 0, 0, ErrNotLeader
	}
	machine, release := m.Machine()
	defer release()
	info, err := machine.Leases().TimeToLive(id, m.options.Clock.Now())
	return int64(info.Remaining / time.Second), info.TTLSeconds, err
}

// lead starts or ends the expiry of leases on this member. It runs in the goroutine that applies, so that the loop never
// waits for a store that is being replaced; it may be late: leases then live longer.
func (m *Member) lead(l leadership) {
	if l.leads {
		m.data.Machine.Leases().Promote(m.options.Clock.Now(), m.extendLeases())
		m.lessorTerm.Store(uint64(l.term)) // after the new deadlines are there: see revokeExpired
		return
	}
	m.data.Machine.Leases().Demote()
}

// leaderOrError returns the leader to ask.
func (m *Member) leaderOrError() (consensus.MemberID, error) {
	leader := m.Leader()
	if leader == consensus.NoMember {
		return leader, ErrNoLeader
	}
	return leader, nil
}
