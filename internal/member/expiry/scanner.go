package expiry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/datadir"
)

const (
	// ScanInterval is how often a leader looks for expired leases; etcd's clients expect half a second or less.
	ScanInterval = 500 * time.Millisecond
	// maxRevokesInScan bounds what one scan proposes. Package lease spreads restarted leases over so many seconds that
	// these two suffice: restartsPerSecond.
	maxRevokesInScan = 500
	// Between two parts the leader waits restsPerPart times as long as the last one took, longestRest at most. Leases of
	// clients that began together end together, and to delete all their keys in a row would hold up writes on every member. It
	// does so for one ScanInterval, so that it falls behind by no more than that.
	restsPerPart = 3
	longestRest  = 100 * time.Millisecond
)

// scanner looks for expired leases from time to time, and revokes them part by part, so that writes of clients come in between.
//
// It is a state machine: each step is an event of the member's clock, and ends with the request or the timer that leads to the
// next one.
//
//	scan --- a read ---> confirmed -> revoke --- revocations ---> ended --- a pause ---> revoke
//	 ^                                 |
//	 +---------- ScanInterval ---------+  nothing is due, or leases may not end yet
//
// The read is what a renewal needs, too. While it has no answer no lease ends, and the clock of leases stands still.
type scanner struct {
	*Revoker
	mu      sync.Mutex // held during a step
	stopped bool
	begun   time.Time // when the scan began
	revoked int       // leases in this scan
	busy    time.Time // since when scans have found more to revoke; zero if all was revoked, or could not be
	warned  bool      // the log says that the clock of leases stands still
}

// Begin begins to revoke what has expired. After stop has returned nothing more is proposed.
func (r *Revoker) Begin() (stop func()) {
	s := &scanner{Revoker: r}
	s.clock.serves(s.options.Clock.Now())
	s.after(ScanInterval, s.scan)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = true
	}
}

// Run revokes what has expired while this member leads, until ctx ends.
func (r *Revoker) Run(ctx context.Context) error {
	stop := r.Begin()
	<-ctx.Done()
	stop()
	return nil
}

// after makes a step after d. It may be called with or without mu.
func (s *scanner) after(d time.Duration, step func()) {
	s.options.Clock.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.stopped {
			step()
		}
	})
}

// scan asks whether renewals could be served now.
func (s *scanner) scan() {
	s.begun, s.revoked = s.options.Clock.Now(), 0
	if !s.options.Leads() || s.options.Stores.Latest().Leases().Len() == 0 {
		s.warned = false
		s.clock.serves(s.begun)
		s.end()
		return
	}
	s.noteStanding()
	if s.clock.isFresh() {
		s.revoke()
		return
	}
	done := finished(func(_ kv.Result, err error) {
		at := s.options.Clock.Now()
		s.after(0, func() { s.confirmed(at, err) })
	})
	if _, err := s.options.Requests.Read(done); err != nil {
		s.confirmed(s.begun, err)
	}
}

// confirmed goes on when the read was answered, or could not be before it timed out.
func (s *scanner) confirmed(at time.Time, err error) {
	if err == nil {
		s.clock.serves(at)
	}
	s.noteStanding()
	if err != nil {
		s.end()
		return
	}
	s.revoke()
}

// noteStanding counts for how long the clock of leases has stood still, and logs when that becomes long, and when it is over.
func (s *scanner) noteStanding() {
	stands, all := s.clock.standing()
	s.options.Stores.Latest().Counts().LeasesStoodMillis.Store(uint64(all.Milliseconds()))
	switch {
	case stands >= longStand && !s.warned:
		s.warned = true
		s.options.Logger.Warn("no lease ends: renewals cannot be served, this leader applies nothing or hears no quorum",
			"for", stands.Round(time.Second))
	case stands == 0 && s.warned:
		s.warned = false
		s.options.Logger.Info("renewals of leases can be served again")
	}
}

// longStand is how long the clock of leases stands still before the log says so.
const longStand = 5 * time.Second

// revoke revokes as much as may be in the log at once.
func (s *scanner) revoke() {
	var due []kv.LeaseRevokeOp
	if s.revoked < maxRevokesInScan && s.clock.mayEnd() {
		if due = s.Due(); len(due) == 0 {
			s.busy = time.Time{}
		}
	}
	if len(due) == 0 {
		s.end()
		return
	}
	p := &revocations{due: due, results: make([]result, len(due)), begun: s.options.Clock.Now()}
	if s.busy.IsZero() {
		s.busy = p.begun
	}
	p.waiting.Store(int64(len(due)))
	for i := range due {
		done := finished(func(r kv.Result, err error) {
			p.results[i] = result{r.Err, err}
			if p.waiting.Add(-1) == 0 {
				at := s.options.Clock.Now()
				s.after(0, func() { s.ended(p, at) })
			}
		})
		if _, err := s.options.Requests.Propose(&kv.Command{LeaseRevoke: &due[i]}, done); err != nil {
			done(kv.Result{}, err)
		}
	}
}

// revocations are proposed at once.
type revocations struct {
	due     []kv.LeaseRevokeOp
	results []result
	begun   time.Time
	waiting atomic.Int64 // for the results of so many
}

// result is what became of a revocation: the refusal of the state machine, or the error because of which it may not have been
// applied.
type result struct{ refused, err error }

// finished is a proposals.Completion.
type finished func(r kv.Result, err error)

// Complete implements proposals.Completion.
func (f finished) Complete(r kv.Result, err error) { f(r, err) }

// ended goes on after a part: at once if there has been more than that to revoke for long, else after a pause.
func (s *scanner) ended(p *revocations, now time.Time) {
	failed := false
	machine := s.options.Stores.Latest()
	for i, got := range p.results {
		id := p.due[i].ID
		if got.err == nil && got.refused == nil && !machine.Leases().Ending(id) {
			machine.Counts().LeasesExpired.Add(1)
		}
		if got.err != nil && !errors.Is(got.err, datadir.ErrStopped) {
			s.options.Logger.Warn("could not revoke an expired lease", "lease", int64(id), "err", got.err)
		}
		failed = failed || got.err != nil
	}
	if s.revoked += len(p.due); failed {
		s.busy = time.Time{}
		s.end()
		return
	}
	s.clock.serves(now) // the store has applied them
	pause := min(restsPerPart*now.Sub(p.begun), longestRest)
	if now.Sub(s.busy) > ScanInterval {
		pause = 0
	}
	s.after(pause, s.revoke)
}

// end waits for the next scan.
func (s *scanner) end() {
	s.after(max(0, ScanInterval-s.options.Clock.Now().Sub(s.begun)), s.scan)
}
