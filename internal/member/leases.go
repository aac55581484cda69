package member

import (
	"context"
	"errors"

	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/expiry"
	"github.com/quorate/quorate/internal/integrity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/peercall"
)

// newRevoker makes what revokes leases that have expired, while this member leads.
func newRevoker(
	o *Options, stores *datadir.Stores, leader *knownLeader, requests *requests, checker *integrity.Checker,
) *expiry.Revoker {
	return expiry.New(expiry.Options{
		Stores: stores, Clock: o.Clock, Extend: o.electionTimeout(), Logger: o.Logger, Leads: leader.leads,
		Corrupt: checker.Marked, ReadIndex: requests.readIndex, Propose: requests.command,
	})
}

// leaseCalls are requests about leases, which only the leader can answer: its clock counts.
type leaseCalls struct {
	leader  *knownLeader
	revoker *expiry.Revoker
	caller  *peercall.Caller
}

// renew renews a lease wherever the leader is and returns its TTL in seconds.
func (l *leaseCalls) renew(ctx context.Context, id kv.LeaseID) (ttlSeconds int64, err error) {
	if l.leader.leads() {
		ttl, err := l.revoker.Renew(ctx, id)
		if !expiry.Elsewhere(err) {
			return ttl, err
		}
	}
	ttl, err := peercall.AtLeader(ctx, l.caller, &methodRenew, id)
	return ttl.remaining, withoutCause(err)
}

// timeToLive asks the leader for the remaining and the granted TTL in whole seconds.
func (l *leaseCalls) timeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if l.leader.leads() {
		remaining, granted, err := l.revoker.TimeToLive(ctx, id)
		if !expiry.Elsewhere(err) {
			return remaining, granted, err
		}
	}
	ttl, err := peercall.AtLeader(ctx, l.caller, &methodTTL, id)
	return ttl.remaining, ttl.granted, withoutCause(err)
}

// withoutCause leaves out of a timeout why the last attempt failed: it helps no client.
func withoutCause(err error) error {
	if errors.Is(err, ErrTimeout) {
		return ErrTimeout
	}
	return err
}

func (l *leaseCalls) renewHere(ctx context.Context, id kv.LeaseID) (ttl leaseTTL, err error) {
	if !l.leader.leads() {
		return ttl, ErrNotLeader
	}
	ttl.remaining, err = l.revoker.Renew(ctx, id)
	return ttl, err
}

func (l *leaseCalls) timeToLiveHere(ctx context.Context, id kv.LeaseID) (ttl leaseTTL, err error) {
	if !l.leader.leads() {
		return ttl, ErrNotLeader
	}
	ttl.remaining, ttl.granted, err = l.revoker.TimeToLive(ctx, id)
	return ttl, err
}

// serve answers members that ask this one as their leader.
func (l *leaseCalls) serve(t *peercall.Table) {
	peercall.Serve(t, &methodRenew, l.renewHere)
	peercall.Serve(t, &methodTTL, l.timeToLiveHere)
}
