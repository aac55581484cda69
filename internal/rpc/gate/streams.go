package gate

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// StreamBytes is what a stream takes that has a watch or renews leases: its goroutines, mostly.
	StreamBytes = 16 << 10
	// silentTimeout is how long a stream may say nothing, or have no user who has logged in while there are users, before it
	// ends if its room is needed.
	silentTimeout = 10 * time.Second
	// evictPause is the time from a search for streams to end that found none to the next search: clients may ask as often as
	// they like, and there may be tens of thousands of streams.
	evictPause = time.Second
)

var (
	// ErrTooManyStreams is what a stream gets beyond the bound.
	ErrTooManyStreams = status.Error(codes.ResourceExhausted,
		"quorate: too many streams are open at this member, or from this address: use fewer for more watchers and leases")
	errSilent = status.Error(codes.ResourceExhausted, "quorate: the stream said nothing for 10 seconds, or nobody has logged "+
		"in by it, and its room is needed: open a stream when it is used")
)

// place is what a stream takes.
type place struct {
	leave   func()
	host    string
	began   time.Time
	said    bool // something; guarded by streams.mu
	unknown bool // there are users, and its caller is none
	end     context.CancelCauseFunc
}

// streams counts the streams that are open, by what they take. Those that renew leases have room of their own, when there is no
// other.
type streams struct {
	held, renewals *admission.Ledger

	mu      sync.Mutex
	open    map[*place]struct{}
	hosts   map[string]*hostStreams // that have any open
	refused uint64
	looked  time.Time // when no stream was silent
}

// hostStreams is what is known of a host that has streams open.
type hostStreams struct {
	open   int
	looked time.Time // when there was nothing to end for this host
}

func newStreams(held, renewals *admission.Ledger) streams {
	return streams{held: held, renewals: renewals, open: map[*place]struct{}{}, hosts: map[string]*hostStreams{}}
}

// enter takes a place for a stream of a host. If there is none, streams that say nothing make room: those of the host itself,
// and of hosts that have more streams than it has. So a host that has all that it may have takes nothing from others.
func (s *streams) enter(p *place, host string, renews bool) error {
	entered := false
	p.host = host
	if p.leave, entered = s.held.Enter(host, StreamBytes); !entered && s.evict(host, p.began) {
		p.leave, entered = s.held.Enter(host, StreamBytes)
	}
	if !entered && renews {
		p.leave, entered = s.renewals.Enter(host, StreamBytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !entered {
		s.refused++
		return ErrTooManyStreams
	}
	s.open[p] = struct{}{}
	if s.hosts[host] == nil {
		s.hosts[host] = &hostStreams{}
	}
	s.hosts[host].open++
	return nil
}

// evict ends the streams that have said nothing for too long, or by which no user has logged in, as far as a host may have
// their room, and reports whether there were any.
func (s *streams) evict(host string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.hosts[host]
	if own == nil {
		own = &hostStreams{}
	}
	if now.Sub(s.looked) < evictPause || now.Sub(own.looked) < evictPause {
		return false
	}
	silent, evicted, least := false, false, own.open
	for p := range s.open {
		if !p.unknown && p.said || now.Sub(p.began) < silentTimeout {
			continue
		}
		silent = true
		if p.host == host || s.hosts[p.host].open > least {
			evicted = true
			s.remove(p)
			p.leave()
			p.end(errSilent)
		}
	}
	switch {
	case !silent:
		s.looked = now
	case !evicted: // others may still find some: a host without any stream ends every silent one
		own.looked = now
	}
	return evicted
}

// remove takes a stream out of those that are open, if it is there. mu is held.
func (s *streams) remove(p *place) {
	if _, open := s.open[p]; !open {
		return
	}
	delete(s.open, p)
	if s.hosts[p.host].open--; s.hosts[p.host].open == 0 {
		delete(s.hosts, p.host)
	}
}

func (s *streams) exit(p *place) {
	s.mu.Lock()
	s.remove(p)
	s.mu.Unlock()
	p.leave()
}

// speaks takes note that a stream has said something.
func (s *streams) speaks(p *place) {
	s.mu.Lock()
	p.said = true
	s.mu.Unlock()
}

func (s *streams) counts() (open int, refused uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.refused
}

// StreamCounts returns how many streams are open, and how many were refused so far.
func (g *Gate) StreamCounts() (open int, refused uint64) { return g.places.counts() }

// renews reports whether a method renews leases.
func (m *Method) renews() bool { return m.name == pb.Lease_LeaseKeepAlive_FullMethodName }
