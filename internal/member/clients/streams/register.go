package streams

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
)

// How many native clients one member takes, so that none of them, and no machine, takes all sessions of the cluster. A
// client still counts until its sessions would be retired, had it left for good.
const (
	maxClients           = 8_192
	maxHostClients       = 2_048 // from one address
	maxConnectionClients = 64
	maxClientStreams     = 16 // of one client
)

var errTooManyClients = status.Error(codes.ResourceExhausted,
	"quorate: too many native clients from this connection or address, or of this member: close some, and wait a minute")

// register knows which native clients are here, and bounds them.
type register struct {
	clock   env.Clock
	keepFor time.Duration // how long a client without a stream counts

	hosts, connections *admission.HostBound

	mu      sync.Mutex
	clients map[consensus.MemberID]*registered
	refused uint64
}

// registered is one client.
type registered struct {
	host    string
	streams int
	leftAt  time.Time // when its last stream ended
	leaving bool      // it is to be forgotten, unless it comes back
	leave   func()    // the bounds
}

func (r *register) init(clock env.Clock, clients Clients) {
	r.clock = clock
	if clients != nil {
		r.keepFor = clients.ClientPatience()
	}
	r.clients = map[consensus.MemberID]*registered{}
	r.hosts = admission.NewHostBound(maxClients, maxHostClients)
	r.connections = admission.NewHostBound(maxClients, maxConnectionClients)
}

// enter counts a stream of a client; leave must be called when it ends.
func (r *register) enter(client consensus.MemberID, from admission.Caller) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.clients[client]
	if one == nil {
		leave, entered := r.bound(from)
		if !entered {
			r.refused++
			return nil, errTooManyClients
		}
		one = &registered{host: from.Host, leave: leave}
		r.clients[client] = one
	}
	if one.streams >= maxClientStreams {
		r.refused++
		return nil, errTooManyClients
	}
	one.streams++
	return func() { r.leave(client, one) }, nil
}

// bound counts a client for its host and for its connection.
func (r *register) bound(from admission.Caller) (leave func(), entered bool) {
	leaveHost, entered := r.hosts.Enter(from.Host)
	if !entered {
		return nil, false
	}
	leaveConnection, entered := r.connections.Enter(from.Address)
	if !entered {
		leaveHost()
		return nil, false
	}
	return func() { leaveHost(); leaveConnection() }, true
}

func (r *register) leave(client consensus.MemberID, one *registered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.streams--; one.streams > 0 {
		return
	}
	one.leftAt = r.clock.Now()
	if !one.leaving { // one timer of a client, however often it comes and goes
		one.leaving = true
		r.forgetAfter(r.keepFor, client, one)
	}
}

// forgetAfter forgets a client unless it has come back, or has left again since: then later.
func (r *register) forgetAfter(wait time.Duration, client consensus.MemberID, one *registered) {
	r.clock.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		gone := r.clock.Now().Sub(one.leftAt)
		switch {
		case one.streams > 0:
			one.leaving = false
		case gone < r.keepFor:
			r.forgetAfter(r.keepFor-gone, client, one)
		default:
			delete(r.clients, client)
			one.leave()
		}
	})
}

// neighboursOf returns a function that reports whether a client is of the same host as this one, as far as both are known here.
func (r *register) neighboursOf(client consensus.MemberID) func(consensus.MemberID) bool {
	return func(other consensus.MemberID) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		a, b := r.clients[client], r.clients[other]
		return a != nil && b != nil && a.host == b.host
	}
}

func (r *register) counts() (clients int, refused uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.clients), r.refused
}
