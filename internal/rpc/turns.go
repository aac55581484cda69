package rpc

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How many calls that cost much run at once, and how many wait for their turn.
const (
	maxBackups     = 8 // each takes as much disk as the store, for as long as its client reads
	maxHostBackups = 4 // of one address
	maxScans       = 2 // Hash, HashKV and Defragment, which read the whole store
	maxMoves       = 1 // of leadership: a second one would call off the first
	maxTurnsWaited = 64
)

var errTooManyBackups = status.Error(codes.ResourceExhausted,
	"quorate: too many backups are being made of this member at once, or for this address: wait for one to end")

// turns lets a few calls of a kind run at once; a few more wait.
type turns struct {
	slots chan struct{}

	mu      sync.Mutex
	waiting int
	refused uint64
}

func newTurns(atOnce int) *turns { return &turns{slots: make(chan struct{}, atOnce)} }

// enter waits for a turn; leave ends it.
func (t *turns) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-t.slots }
	select {
	case t.slots <- struct{}{}:
		return leave, nil
	default:
	}
	if !t.wait() {
		return nil, rpctypes.ErrGRPCRequestTooManyRequests
	}
	defer t.waited()
	select {
	case t.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *turns) wait() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting >= maxTurnsWaited {
		t.refused++
		return false
	}
	t.waiting++
	return true
}

func (t *turns) waited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
}

func (t *turns) refusals() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}

// shares lets so many calls run, of all clients and of one address; none waits.
type shares struct {
	most, mostOfHost int

	mu      sync.Mutex
	all     int
	hosts   map[string]int
	refused uint64
}

func newShares(most, mostOfHost int) *shares {
	return &shares{most: most, mostOfHost: mostOfHost, hosts: map[string]int{}}
}

// enter takes a share for a client at host, or returns false; leave gives it back.
func (s *shares) enter(host string) (leave func(), entered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.hosts[host] >= s.mostOfHost {
		s.refused++
		return nil, false
	}
	s.all++
	s.hosts[host]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		countDown(s.hosts, host)
	}, true
}

func (s *shares) counts() (open int, refused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, s.refused
}

// costly are the bounds of calls that cost much.
type costly struct {
	backups, streams *shares
	scans, moves     *turns
}

func newCostly() costly {
	return costly{backups: newShares(maxBackups, maxHostBackups), streams: newShares(maxStreams, maxHostStreams),
		scans: newTurns(maxScans), moves: newTurns(maxMoves)}
}

// How many streams clients may have open at one member: watches, keep-alives and all others.
const (
	maxStreams     = 65_536
	maxHostStreams = 32_768
)

var errTooManyStreams = status.Error(codes.ResourceExhausted,
	"quorate: too many streams are open at this member, or from this address: use fewer for more watchers and leases")

func (c *collector) collectCostly(e *emitter) {
	costly := &c.s.costly
	for _, row := range []struct {
		what string
		of   *shares
	}{{"backup", costly.backups}, {"stream", costly.streams}} {
		open, refused := row.of.counts()
		e.gauge("quorate_costly_calls", "Calls that are bounded in number and run now, by what they are.", float64(open),
			"call", row.what)
		e.counter("quorate_costly_calls_refused_total", "Calls that were refused because too many of their kind run or wait.",
			float64(refused), "call", row.what)
	}
	for _, row := range []struct {
		what string
		of   *turns
	}{{"scan", costly.scans}, {"move_leader", costly.moves}} {
		e.gauge("quorate_costly_calls", "Calls that are bounded in number and run now, by what they are.",
			float64(len(row.of.slots)), "call", row.what)
		e.counter("quorate_costly_calls_refused_total", "Calls that were refused because too many of their kind run or wait.",
			float64(row.of.refusals()), "call", row.what)
	}
}
