package trail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/env"
)

// Options of New.
type Options struct {
	Member   uint64
	Sinks    []SinkOptions
	Bytes    int64         // of all queues
	Deadline time.Duration // of required sinks
	Exempt   string        // the user whose calls pass while a required sink takes nothing
	// Publish writes a head into the replicated state; nil: heads are kept nowhere.
	Publish func(ctx context.Context, head audit.Head) error
	Clock   env.Clock
	Logger  *slog.Logger
}

// Trail takes the records of a member.
type Trail struct {
	options Options
	sinks   []*Sink
	wake    []chan struct{}
	cancel  context.CancelFunc
	running sync.WaitGroup
	refused atomic.Uint64
	must    bool // a sink is required
	pool    sync.Pool
	fresh   chan struct{} // closed and replaced when a required sink has taken something
	freshMu sync.Mutex
}

// New makes a Trail. Run starts it.
func New(options Options) *Trail {
	t := &Trail{options: options, fresh: make(chan struct{}), cancel: func() {}}
	t.pool.New = func() any { return new([]byte) }
	most := int(options.Bytes) / max(len(options.Sinks), 1)
	for _, o := range options.Sinks {
		t.sinks = append(t.sinks, newSink(o, options.Member, most))
		t.wake = append(t.wake, make(chan struct{}, 1))
		t.must = t.must || o.Required
	}
	return t
}

// Record records a call as a policy says.
func (t *Trail) Record(p *audit.Policy, e *audit.Event) {
	level, shape := p.Match(e)
	if level == audit.None {
		return
	}
	e.Time = t.options.Clock.Now()
	buffer := t.pool.Get().(*[]byte)
	body := p.Body((*buffer)[:0], e, level, shape)
	for i, s := range t.sinks {
		if s.offer(e.Time, body, e.Refused) {
			select {
			case t.wake[i] <- struct{}{}:
			default:
			}
		}
	}
	*buffer = body
	t.pool.Put(buffer)
}

// BlockedError refuses a call that could not be recorded.
type BlockedError struct {
	Sink, Why string
	For       time.Duration
}

// Error implements error.
func (e *BlockedError) Error() string {
	why := e.Why
	if why == "" {
		why = "it takes records too slowly"
	}
	return fmt.Sprintf(audit.Blocked+", and %s of this member, which is required, has taken no "+
		"record for %s: %s; nothing was changed: repair it, or try another "+
		"member", e.Sink, e.For.Round(100*time.Millisecond), why)
}

// Free reports whether calls need not ask Admit at present.
func (t *Trail) Free() bool {
	if !t.must {
		return true
	}
	now := t.options.Clock.Now()
	for _, s := range t.sinks {
		if s.required && (s.overdue(now) > t.options.Deadline || s.halfFull()) {
			return false
		}
	}
	return true
}

// Admit refuses a call that a policy has recorded while a required sink takes no records: with a *BlockedError. It waits for
// room, for the deadline at most.
func (t *Trail) Admit(ctx context.Context, p *audit.Policy, e *audit.Event) error {
	if t.Free() || t.exempt(e) {
		return nil
	}
	if level, _ := p.Match(e); level == audit.None {
		return nil
	}
	begun := t.options.Clock.Now()
	for {
		taken := t.taken()
		now := t.options.Clock.Now()
		blocked, patience := t.blocked(now, begun)
		if blocked == nil {
			return nil
		}
		if patience <= 0 {
			t.refused.Add(1)
			return blocked
		}
		wait := time.NewTimer(patience)
		select {
		case <-taken:
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
		wait.Stop()
	}
}

// exempt reports whether a call is that of the exempt user, or the login of somebody who says to be that user.
func (t *Trail) exempt(e *audit.Event) bool {
	return t.options.Exempt != "" && (e.User == t.options.Exempt || e.Op == audit.OpLogin && e.Login == t.options.Exempt)
}

// blocked returns why a call may not be taken, and for how long it may wait for that to change.
func (t *Trail) blocked(now, begun time.Time) (*BlockedError, time.Duration) {
	for _, s := range t.sinks {
		if !s.required {
			continue
		}
		late := s.overdue(now)
		switch {
		case late > t.options.Deadline:
			return &BlockedError{s.name, s.Trouble(), late}, 0
		case s.halfFull():
			return &BlockedError{s.name, s.Trouble(), late}, t.options.Deadline - max(late, now.Sub(begun))
		}
	}
	return nil, 0
}

func (t *Trail) taken() <-chan struct{} {
	t.freshMu.Lock()
	defer t.freshMu.Unlock()
	return t.fresh
}

func (t *Trail) tookSome() {
	t.freshMu.Lock()
	defer t.freshMu.Unlock()
	close(t.fresh)
	t.fresh = make(chan struct{})
}

// ErrNotYet is what Options.Publish returns while heads can be kept nowhere: it is asked again, and nothing is logged.
var ErrNotYet = errors.New("trail: the cluster keeps no heads yet")

// headEvery is how often the head of a chain is published, if it moved.
const headEvery = time.Minute

// complainEvery is how often the log says that a sink takes nothing.
const complainEvery = time.Minute

// Run starts the goroutines of the sinks.
func (t *Trail) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	for i, s := range t.sinks {
		t.running.Go(func() { t.run(ctx, s, t.wake[i]) })
	}
}

// Close writes what waits, and a last record, as far as the sinks take it within the patience. A sink that hangs is left alone.
func (t *Trail) Close(patience time.Duration) {
	t.cancel()
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
}

func (t *Trail) run(ctx context.Context, s *Sink, wake <-chan struct{}) {
	var complained time.Time
	heads := heads{due: t.options.Clock.Now().Add(firstHead), fresh: make(chan audit.Head, 1)}
	if t.options.Publish != nil {
		t.running.Go(func() { heads.publish(ctx, t) })
	}
	for {
		now := t.options.Clock.Now()
		before := s.taken.Load()
		again := s.Turn(now)
		if s.taken.Load() != before && t.must {
			t.tookSome()
		}
		if why := s.Trouble(); why != "" && now.Sub(complained) >= complainEvery {
			complained = now
			t.options.Logger.Error("an output of the audit takes no records",
				"output", s.name, "required", s.required, "err", why)
		}
		heads.look(t, s, now)
		wait := time.NewTimer(again)
		select {
		case <-wake:
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			s.ends(t.options.Clock.Now())
			return
		}
		wait.Stop()
	}
}

// heads is what a sink has published of its chain.
type heads struct {
	due   time.Time
	last  uint64
	fresh chan audit.Head // the newest that is not taken by publish
}

// look passes the head of a sink on, each minute if it moved.
func (h *heads) look(t *Trail, s *Sink, now time.Time) {
	if t.options.Publish == nil || now.Before(h.due) {
		return
	}
	h.due = now.Add(headEvery)
	head, moved, err := s.Head(now, h.last)
	if err != nil {
		t.options.Logger.Warn("the audit's records were not written to disk", "output", s.name, "err", err)
	}
	if !moved {
		return
	}
	h.last = head.Sequence
	select {
	case <-h.fresh: // a newer one takes its place
	default:
	}
	h.fresh <- head
}

// publish publishes heads, one after the other. It tries again until that works, or there is a newer one.
func (h *heads) publish(ctx context.Context, t *Trail) {
	var head audit.Head
	for {
		select {
		case head = <-h.fresh:
		case <-ctx.Done():
			return
		}
		for h.once(ctx, t, head) != nil && ctx.Err() == nil {
			wait := time.NewTimer(publishAgain)
			select {
			case head = <-h.fresh:
			case <-wait.C:
			case <-ctx.Done():
			}
			wait.Stop()
		}
	}
}

func (h *heads) once(ctx context.Context, t *Trail, head audit.Head) error {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	err := t.options.Publish(ctx, head)
	if err != nil && !errors.Is(err, ErrNotYet) {
		t.options.Logger.Warn("the head of the audit's records was not published", "file", head.File, "err", err)
	}
	return err
}

const (
	firstHead       = 5 * time.Second // when the first head is published
	publishAgain    = 10 * time.Second
	publishPatience = 5 * time.Second // bounds the wait for a head to be replicated
)

// SinkStatus is how a sink is.
type SinkStatus struct {
	Name                   string
	File                   bool // its records stay in a file
	Required               bool
	Taken, Dropped, Failed uint64
	WaitingBytes           int
	Late                   time.Duration // of the oldest record that waits
	Deadline               time.Duration // of a required sink; zero: it is best effort
	Blocked                bool          // calls are refused because of it
	Trouble                string
}

// Status returns how the sinks are, and how many calls were refused because of them.
func (t *Trail) Status() (sinks []SinkStatus, refused uint64) {
	now := t.options.Clock.Now()
	for _, s := range t.sinks {
		s.mu.Lock()
		waiting := len(s.waiting)
		s.mu.Unlock()
		late, deadline := s.overdue(now), time.Duration(0)
		if s.required {
			deadline = t.options.Deadline
		}
		sinks = append(sinks, SinkStatus{Name: s.name, Required: s.required, File: s.file != nil, Deadline: deadline,
			Taken: s.taken.Load(), Dropped: s.dropped.Load(),
			Failed: s.failed.Load(), WaitingBytes: waiting, Late: late, Blocked: s.required && late > t.options.Deadline,
			Trouble: strings.ToValidUTF8(s.Trouble(), "?")})
	}
	return sinks, t.refused.Load()
}
