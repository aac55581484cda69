package member

import (
	"context"

	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
)

// RenewLease renews a lease wherever the leader is and returns its TTL in seconds.
func (m *Member) RenewLease(ctx context.Context, id kv.LeaseID) (ttlSeconds int64, err error) {
	if m.Leader() == m.ID() {
		ttl, err := m.leases.Renew(ctx, id)
		if !expiry.Elsewhere(err) {
			return ttl, err
		}
	}
	answer, err := m.callLeader(ctx, methodLeaseRenew, leaseQuestion{ID: id})
	return answer.TTLSeconds, err
}

// LeaseTimeToLive asks the leader for the remaining and the granted TTL in whole seconds.
func (m *Member) LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if m.Leader() == m.ID() {
		remaining, granted, err := m.leases.TimeToLive(ctx, id)
		if !expiry.Elsewhere(err) {
			return remaining, granted, err
		}
	}
	answer, err := m.callLeader(ctx, methodLeaseTTL, leaseQuestion{ID: id})
	return answer.TTLSeconds, answer.GrantedSeconds, err
}
