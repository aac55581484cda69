package expiry

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
)

const (
	// ScanInterval is how often a leader looks for expired leases; etcd's clients expect half a second or less.
	ScanInterval = 500 * time.Millisecond
	// maxRevokesAtOnce bounds what one scan proposes. Package lease spreads restarted leases over so many seconds that
	// these two suffice: restartsPerSecond.
	maxRevokesAtOnce = 500
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

// Due returns the revocations of the leases that have expired, if this member leads.
func (r *Revoker) Due() []kv.LeaseRevokeOp {
	if !r.options.Leads() || r.options.Corrupt() { // whoever leads next begins anew
		return nil
	}
	term := r.term.Load() // before the question: the answer is of this term or a later one
	machine, release := r.options.Stores.Machine()
	defer release()
	var due []kv.LeaseRevokeOp
	for _, id := range machine.Leases().Expired(r.options.Clock.Now(), maxRevokesAtOnce) {
		due = append(due, kv.LeaseRevokeOp{ID: id, Term: term})
	}
	return due
}

func (r *Revoker) revokeExpired(ctx context.Context) {
	expired := r.Due()
	done := make(chan struct{}, len(expired))
	for i := range expired {
		go func() {
			command := kv.Command{LeaseRevoke: &expired[i]}
			result, err := r.options.Propose(ctx, &command)
			if err == nil && result.Err == nil {
				r.options.Stores.Latest().Counts().LeasesExpired.Add(1)
			}
			if err != nil && !errors.Is(err, datadir.ErrStopped) {
				r.options.Logger.Warn("could not revoke an expired lease", "lease", int64(expired[i].ID), "err", err)
			}
			done <- struct{}{}
		}()
	}
	for range expired {
		<-done
	}
}

// Renew renews a lease and returns its TTL in seconds, if this member leads.
func (r *Revoker) Renew(ctx context.Context, id kv.LeaseID) (ttlSeconds int64, err error) {
	if err := r.options.ReadIndex(ctx); err != nil {
		return 0, err
	}
	return r.Extend(id)
}

// Extend is Renew for who has made sure, since it was asked, that a quorum confirms this member as the leader.
func (r *Revoker) Extend(id kv.LeaseID) (ttlSeconds int64, err error) {
	if !r.options.Leads() {
		return 0, ErrNotLeader
	}
	machine, release := r.options.Stores.Machine()
	defer release()
	ttlSeconds, err = machine.Leases().Renew(id, r.options.Clock.Now())
	if err == nil {
		machine.Counts().LeasesRenewed.Add(1)
	}
	return ttlSeconds, err
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
