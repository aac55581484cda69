package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/member/peercall"
)

// newRevoker makes the part that revokes expired leases while this member leads.
func newRevoker(
	o *Options, stores *datadir.Stores, leader *lanes.KnownLeader, requests *requests, checker *integrity.Checker,
) *expiry.Revoker {
	return expiry.New(expiry.Options{
		Stores: stores, Clock: o.Clock, Extend: o.electionTimeout(), Logger: o.Logger, Leads: leader.Leads,
		Corrupt: checker.Marked, Requests: requests.Requests,
	})
}

// leaseCalls are requests about leases. Only the leader can answer them, because its clock counts.
type leaseCalls struct {
	leader   *lanes.KnownLeader
	requests *requests
	revoker  *expiry.Revoker
	caller   *peercall.Caller
	renewals expiry.Batches
}

// renew renews leases at the leader, in one batch with the renewals that other callers want meanwhile.
func (l *leaseCalls) renew(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	type answer struct {
		renewed []lease.Renewal
		err     error
	}
	answered := make(chan answer, 1)
	batch := l.renewals.Join(ids, func(renewed []lease.Renewal, err error) { answered <- answer{renewed, err} })
	if batch != nil {
		go l.askBatches(batch)
	}
	select {
	case a := <-answered:
		return a.renewed, withoutCause(a.err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// askBatches sends a batch of renewals, and then the renewals that wait.
func (l *leaseCalls) askBatches(batch *expiry.Batch) {
	for batch != nil {
		renewed, err := l.renewBatch(context.Background(), batch.IDs)
		batch = l.renewals.Answered(batch, renewed, err)
	}
}

func (l *leaseCalls) renewBatch(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	if l.leader.Leads() {
		renewed, err := l.renewHere(ctx, ids)
		if !expiry.Elsewhere(err) {
			return renewed, err
		}
	}
	renewed, err := peercall.AtLeader(ctx, l.caller, &methodRenew, ids)
	if err == nil && len(renewed) != len(ids) {
		err = fmt.Errorf("member: the leader answered for %s instead of %d", plural.Of(len(renewed), "lease"), len(ids))
	}
	return renewed, err
}

// timeToLive asks the leader for the remaining and the granted TTL, in seconds.
func (l *leaseCalls) timeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if l.leader.Leads() {
		ttl, err := l.timeToLiveHere(ctx, id)
		if !expiry.Elsewhere(err) {
			return ttl.remaining, ttl.granted, err
		}
	}
	ttl, err := peercall.AtLeader(ctx, l.caller, &methodTTL, id)
	return ttl.remaining, ttl.granted, withoutCause(err)
}

// withoutCause removes the error of the last attempt from a timeout: it does not help clients.
func withoutCause(err error) error {
	if errors.Is(err, ErrTimeout) {
		return ErrTimeout
	}
	return err
}

func (l *leaseCalls) renewHere(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	if !l.leader.Leads() {
		return nil, ErrNotLeader
	}
	if err := l.requests.readIndex(ctx); err != nil {
		return nil, err
	}
	return l.revoker.Renew(ids)
}

func (l *leaseCalls) timeToLiveHere(ctx context.Context, id kv.LeaseID) (ttl leaseTTL, err error) {
	if !l.leader.Leads() {
		return ttl, ErrNotLeader
	}
	if err := l.requests.readIndex(ctx); err != nil {
		return ttl, err
	}
	ttl.remaining, ttl.granted, err = l.revoker.TimeToLive(id)
	return ttl, err
}

// serve answers members for which this member is the leader.
func (l *leaseCalls) serve(t *peercall.Table) {
	peercall.Serve(t, &methodRenew, l.renewHere)
	peercall.Serve(t, &methodTTL, l.timeToLiveHere)
}
