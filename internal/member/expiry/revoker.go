package expiry

import (
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
	"github.com/quorate/quorate/internal/member/proposals"
)

const (
	// maxRevokesAtOnce and maxKeysAtOnce bound the revocations that are in the log and not applied: a write waits for no more
	// of them, or for one lease with more keys.
	maxRevokesAtOnce = 250
	maxKeysAtOnce    = 500
)

// ErrNotLeader means that this member does not lead, and only a leader can do this.
var ErrNotLeader = errors.New("member: not leader")

// Options are what a Revoker needs of its member.
type Options struct {
	Stores *datadir.Stores
	Clock  env.Clock
	Extend time.Duration // for about how long a cluster that elects a leader is without one
	Logger *slog.Logger

	Leads    func() bool
	Corrupt  func() bool
	Requests Requests
	Faults   Faults
}

// Requests are asynchronous requests to this member: see lanes.Requests. Each calls done once, unless it returns an error.
type Requests interface {
	Propose(command *kv.Command, done proposals.Completion) (abandon func() bool, err error)
	Read(done proposals.Completion) (abandon func() bool, err error)
}

// Faults are negative controls of the simulator.
type Faults struct {
	Early  time.Duration // leases end this much too early
	RunsOn bool          // the clock of leases does not stand still while renewals wait
}

// Revoker ends and renews leases while this member leads.
type Revoker struct {
	options Options
	clock   clock
	term    atomic.Uint64 // for which the deadlines began last
}

// New returns a Revoker of a member that does not lead.
func New(options Options) *Revoker {
	return &Revoker{options: options, clock: clock{clock: options.Clock, runsOn: options.Faults.RunsOn}}
}

// Lead records that this member leads in a term, or does not lead. If the call is late, leases live longer.
func (r *Revoker) Lead(machine *apply.Machine, leads bool, term consensus.Term) {
	if !leads {
		machine.Leases().Demote()
		return
	}
	machine.Leases().Promote(r.clock.now(), r.options.Extend)
	r.term.Store(uint64(term)) // after the new deadlines are there: see Due
}

// Continue starts the deadlines of a store that a snapshot has replaced, if this member leads.
func (r *Revoker) Continue(machine *apply.Machine) {
	if r.options.Leads() {
		machine.Leases().Promote(r.clock.now(), r.options.Extend)
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
	now := r.clock.now().Add(r.options.Faults.Early)
	for _, id := range machine.Leases().Expired(now, atOnce, maxKeysAtOnce) {
		due = append(due, kv.LeaseRevokeOp{ID: id, Term: term})
	}
	return due
}

// Renew renews leases, if this member leads. The caller has made sure, since it was asked, that a quorum confirms this member
// as the leader. The answers are in the order of the leases.
func (r *Revoker) Renew(ids []kv.LeaseID) ([]lease.Renewal, error) {
	if !r.options.Leads() {
		return nil, ErrNotLeader
	}
	r.clock.serves(r.options.Clock.Now())
	machine, release := r.options.Stores.Machine()
	defer release()
	renewals, err := machine.Leases().RenewAll(ids, r.clock.now())
	renewed := uint64(0)
	for i := range renewals {
		if renewals[i].Err == nil {
			renewed++
		}
	}
	machine.Counts().LeasesRenewed.Add(renewed)
	return renewals, err
}

// TimeToLive returns the remaining and the granted TTL in whole seconds, if this member leads. The caller has made sure of the
// same as with Renew.
func (r *Revoker) TimeToLive(id kv.LeaseID) (remaining, granted int64, err error) {
	if !r.options.Leads() {
		return 0, 0, ErrNotLeader
	}
	machine, release := r.options.Stores.Machine()
	defer release()
	info, err := machine.Leases().TimeToLive(id, r.clock.now())
	return int64(info.Remaining / time.Second), info.TTLSeconds, err
}

// Elsewhere reports whether an error of Renew or TimeToLive only says that another member has to be asked, or this one
// again in a moment.
func Elsewhere(err error) bool {
	return errors.Is(err, ErrNotLeader) || errors.Is(err, lease.ErrNotPrimary)
}
