package expiry

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/datadir"
)

const (
	// ScanInterval is how often a leader looks for expired leases; etcd's clients expect half a second or less.
	ScanInterval = 500 * time.Millisecond
	// maxRevokesInScan bounds what one scan proposes. Package lease spreads restarted leases over so many seconds that
	// these two suffice: restartsPerSecond.
	maxRevokesInScan = 500
	// maxRevokesAtOnce and maxKeysAtOnce bound the revocations that are in the log and not applied: a write waits for no more
	// of them, or for one lease with more keys.
	maxRevokesAtOnce = 250
	maxKeysAtOnce    = 500
	// Between two parts the leader waits restsPerPart times as long as the last one took, longestRest at most. Leases of
	// clients that began together end together, and to delete all their keys in a row would hold up writes on every member. It
	// does so for one ScanInterval, so that it falls behind by no more than that.
	restsPerPart = 3
	longestRest  = 100 * time.Millisecond
)

// ErrNotLeader means that this member does not lead, and only a leader can do this.
var ErrNotLeader = errors.New("member: not leader")

// Options are what a Revoker needs of its member.
type Options struct {
	Stores *datadir.Stores
	Clock  env.Clock
	Extend time.Duration // for about how long a cluster that elects a leader is without one
	Logger *slog.Logger

	Leads     func() bool
	Corrupt   func() bool
	ReadIndex func(ctx context.Context) error
	Propose   func(ctx context.Context, command *kv.Command) (kv.Result, error)
}

// Revoker ends and renews leases while this member leads.
type Revoker struct {
	options Options
	term    atomic.Uint64 // for which the deadlines began last
	busy    time.Time     // since when scans have found more to revoke; zero if all was revoked, or could not be
}

// New returns a Revoker of a member that does not lead.
func New(options Options) *Revoker { return &Revoker{options: options} }

// Lead records that this member leads in a term, or does not lead. If the call is late, leases live longer.
func (r *Revoker) Lead(machine *apply.Machine, leads bool, term consensus.Term) {
	if !leads {
		machine.Leases().Demote()
		return
	}
	machine.Leases().Promote(r.options.Clock.Now(), r.options.Extend)
	r.term.Store(uint64(term)) // after the new deadlines are there: see revokeExpired
}

// Continue starts the deadlines of a store that a snapshot has replaced, if this member leads.
func (r *Revoker) Continue(machine *apply.Machine) {
	if r.options.Leads() {
		machine.Leases().Promote(r.options.Clock.Now(), r.options.Extend)
	}
}

// Run revokes what has expired while this member leads, until ctx ends.
func (r *Revoker) Run(ctx context.Context) error {
	ticker := time.NewTicker(ScanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.revokeExpired(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// Due returns the revocations of leases that have expired, if this member leads: as many as may be in the log at once.
func (r *Revoker) Due() []kv.LeaseRevokeOp {
	if !r.options.Leads() {
		return nil // the next leader begins anew
	}
	atOnce := maxRevokesAtOnce
	if r.options.Corrupt() {
		atOnce = 0 // the leases that are granted begin to count nevertheless
	}
	term := r.term.Load() // before the question: the answer is of this term or a later one
	machine, release := r.options.Stores.Machine()
	defer release()
	var due []kv.LeaseRevokeOp
	for _, id := range machine.Leases().Expired(r.options.Clock.Now(), atOnce, maxKeysAtOnce) {
		due = append(due, kv.LeaseRevokeOp{ID: id, Term: term})
	}
	return due
}

// revokeExpired revokes what has expired, one part after the other, so that writes of clients come in between.
func (r *Revoker) revokeExpired(ctx context.Context) {
	for revoked := 0; revoked < maxRevokesInScan; {
		due := r.Due()
		if len(due) == 0 {
			r.busy = time.Time{}
			return
		}
		begun := time.Now()
		if r.busy.IsZero() {
			r.busy = begun
		}
		if !r.revoke(ctx, due) {
			r.busy = time.Time{}
			return
		}
		revoked += len(due)
		if time.Since(r.busy) > ScanInterval {
			continue
		}
		select {
		case <-time.After(min(restsPerPart*time.Since(begun), longestRest)):
		case <-ctx.Done():
			return
		}
	}
}

// revoke waits until leases are revoked, and returns whether all of them are.
func (r *Revoker) revoke(ctx context.Context, due []kv.LeaseRevokeOp) bool {
	done := make(chan error, len(due))
	for i := range due {
		go func() {
			command := kv.Command{LeaseRevoke: &due[i]}
			result, err := r.options.Propose(ctx, &command)
			if machine := r.options.Stores.Latest(); err == nil && result.Err == nil && !machine.Leases().Ending(due[i].ID) {
				machine.Counts().LeasesExpired.Add(1)
			}
			if err != nil && !errors.Is(err, datadir.ErrStopped) {
				r.options.Logger.Warn("could not revoke an expired lease", "lease", int64(due[i].ID), "err", err)
			}
			done <- err
		}()
	}
	all := true
	for range due {
		all = <-done == nil && all
	}
	return all
}

// Renew renews leases, if this member leads: one confirmation by a quorum is for all of them. The answers are in the order of
// the leases.
func (r *Revoker) Renew(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	if err := r.options.ReadIndex(ctx); err != nil {
		return nil, err
	}
	return r.Extend(ids)
}

// Extend is Renew for a caller that has made sure, since it was asked, that a quorum confirms this member as the leader.
func (r *Revoker) Extend(ids []kv.LeaseID) ([]lease.Renewal, error) {
	if !r.options.Leads() {
		return nil, ErrNotLeader
	}
	machine, release := r.options.Stores.Machine()
	defer release()
	renewals, err := machine.Leases().RenewAll(ids, r.options.Clock.Now())
	renewed := uint64(0)
	for i := range renewals {
		if renewals[i].Err == nil {
			renewed++
		}
	}
	machine.Counts().LeasesRenewed.Add(renewed)
	return renewals, err
}

// TimeToLive returns the remaining and the granted TTL in whole seconds, if this member leads.
func (r *Revoker) TimeToLive(ctx context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	if err := r.options.ReadIndex(ctx); err != nil {
		return 0, 0, err
	}
	if !r.options.Leads() {
		return 0, 0, ErrNotLeader
	}
	machine, release := r.options.Stores.Machine()
	defer release()
	info, err := machine.Leases().TimeToLive(id, r.options.Clock.Now())
	return int64(info.Remaining / time.Second), info.TTLSeconds, err
}

// Elsewhere reports whether an error of Renew or TimeToLive only says that another member has to be asked, or this one
// again in a moment.
func Elsewhere(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, lease.ErrNotPrimary)
}
