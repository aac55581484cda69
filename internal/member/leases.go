package member

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/peercall"
)

// RenewLease renews a lease wherever the leader is and returns its TTL in seconds.
func (m *Member) RenewLease(ctx context.Context, id kv.LeaseID) (ttlSeconds int64, err error) {
	if m.leads() {
		ttl, err := m.leases.Renew(ctx, id)
		if !expiry.Elsewhere(err) {
			return ttl, err
		}
	}
	ttl, err := peercall.AtLeader(ctx, m.caller, &methodRenew, id)
	return ttl.remaining, withoutCause(err)
}

// LeaseTimeToLive asks the leader for the remaining and the granted TTL in whole seconds.
func (m *Member) LeaseTimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if m.leads() {
		remaining, granted, err := m.leases.TimeToLive(ctx, id)
		if !expiry.Elsewhere(err) {
			return remaining, granted, err
		}
	}
	ttl, err := peercall.AtLeader(ctx, m.caller, &methodTTL, id)
	return ttl.remaining, ttl.granted, withoutCause(err)
}

// withoutCause leaves out of a timeout why the last attempt failed: it helps no client.
func withoutCause(err error) error {
	if errors.Is(err, ErrTimeout) {
		return ErrTimeout
	}
	return err
}

func (m *Member) renewHere(ctx context.Context, id kv.LeaseID) (ttl leaseTTL, err error) {
	if !m.leads() {
		return ttl, ErrNotLeader
	}
	ttl.remaining, err = m.leases.Renew(ctx, id)
	return ttl, err
}

func (m *Member) timeToLiveHere(ctx context.Context, id kv.LeaseID) (ttl leaseTTL, err error) {
	if !m.leads() {
		return ttl, ErrNotLeader
	}
	ttl.remaining, ttl.granted, err = m.leases.TimeToLive(ctx, id)
	return ttl, err
}
