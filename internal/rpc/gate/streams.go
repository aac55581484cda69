package gate

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/admission"
)

const (
	// StreamBytes is what a stream takes that has a watch or renews leases: its goroutines, mostly.
	StreamBytes = 16 << 10
	// silentTimeout is how long a stream may say nothing, or have nobody who has logged in while there are users, before it
	// ends if its room is needed.
	silentTimeout = 10 * time.Second
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
	refused uint64
}

// enter takes a place for a stream of a host. If there is none, streams that say nothing make room.
func (s *streams) enter(p *place, host string, renews bool) error {
	entered := false
	if p.leave, entered = s.held.Enter(host, StreamBytes); !entered && s.evict(p.began) {
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
	return nil
}

// evict ends the streams that have said nothing for too long, or by which nobody has logged in, and reports whether there were
// any.
func (s *streams) evict(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	evicted := false
	for p := range s.open {
		if (p.unknown || !p.said) && now.Sub(p.began) >= silentTimeout {
			evicted = true
			delete(s.open, p)
			p.leave()
			p.end(errSilent)
		}
	}
	return evicted
}

func (s *streams) exit(p *place) {
	s.mu.Lock()
	delete(s.open, p)
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
