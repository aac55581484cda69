package rpc

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/lobby"
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

// connection is whence a client came.
type connection struct{ host, name string }

func connectionOf(ctx context.Context) connection {
	from, ok := peer.FromContext(ctx)
	if !ok || from.Addr == nil {
		return connection{}
	}
	return connection{host: lobby.Host(from.Addr), name: from.Addr.String()}
}

// clientRegister knows which native clients are here, and bounds them.
type clientRegister struct {
	clock    env.Clock
	patience time.Duration

	mu          sync.Mutex
	clients     map[consensus.MemberID]*registered
	hosts       map[string]int // clients by where they came from
	connections map[string]int
	refused     uint64
}

// registered is one client.
type registered struct {
	from    connection
	streams int
	visit   uint64 // counts what enters, so that an old wish to forget it is known
}

func (r *clientRegister) init(clock env.Clock, clients Clients) {
	r.clock = clock
	if clients != nil {
		r.patience = clients.ClientPatience()
	}
	r.clients = map[consensus.MemberID]*registered{}
	r.hosts, r.connections = map[string]int{}, map[string]int{}
}

// enter counts a stream of a client; leave must be called when it ends.
func (r *clientRegister) enter(client consensus.MemberID, from connection) (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.clients[client]
	if one == nil {
		if len(r.clients) >= maxClients || r.hosts[from.host] >= maxHostClients ||
			r.connections[from.name] >= maxConnectionClients {
			r.refused++
			return nil, errTooManyClients
		}
		one = &registered{from: from}
		r.clients[client] = one
		r.hosts[from.host]++
		r.connections[from.name]++
	}
	if one.streams >= maxClientStreams {
		r.refused++
		return nil, errTooManyClients
	}
	one.streams++
	one.visit++
	return func() { r.leave(client, one) }, nil
}

func (r *clientRegister) leave(client consensus.MemberID, one *registered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.streams--; one.streams > 0 {
		return
	}
	visit := one.visit
	r.clock.AfterFunc(r.patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.streams > 0 || one.visit != visit {
			return
		}
		delete(r.clients, client)
		countDown(r.hosts, one.from.host)
		countDown(r.connections, one.from.name)
	})
}

func countDown(counts map[string]int, name string) {
	if counts[name]--; counts[name] <= 0 {
		delete(counts, name)
	}
}

func (r *clientRegister) counts() (clients int, refused uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.clients), r.refused
}
