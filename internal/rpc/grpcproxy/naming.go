package grpcproxy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/naming/endpoints"

	"github.com/quorate/quorate/internal/base/broadcast"
)

// Naming says under which address clients know the proxy, and where it tells others.
type Naming struct {
	URL    string        // that MemberList answers; empty: MemberList is the members'
	Prefix string        // of the keys under which proxies tell theirs; empty: this one tells none
	TTL    time.Duration // of such a key, once its proxy is gone
}

const (
	// maxNamed bounds the proxies under one prefix that are remembered, maxNamedBytes what one may say of itself.
	maxNamed      = 4096
	maxNamedBytes = 4 << 10
	// namingPause follows an attempt to register or to watch the others.
	namingPause = time.Second
)

// naming knows the proxies that have registered under the prefix, and registers this one.
type naming struct {
	Naming
	client *clientv3.Client
	logger *slog.Logger

	mu  sync.Mutex
	all map[string]endpoints.Endpoint // by key
}

// forget begins anew: a new watch tells all that there are.
func (n *naming) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = map[string]endpoints.Endpoint{}
}

func (n *naming) update(updates []*endpoints.Update) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, u := range updates {
		switch u.Op {
		case endpoints.Delete:
			delete(n.all, u.Key)
		case endpoints.Add:
			meta := fmt.Sprint(u.Endpoint.Metadata)
			_, known := n.all[u.Key]
			if len(u.Key)+len(u.Endpoint.Addr)+len(meta) <= maxNamedBytes && (known || len(n.all) < maxNamed) {
				n.all[u.Key] = endpoints.Endpoint{Addr: u.Endpoint.Addr, Metadata: meta}
			}
		}
	}
}

// list is what MemberList shows: the proxies by address, or this one alone while none is known.
func (n *naming) list() []*pb.Member {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []*pb.Member
	for _, e := range n.all {
		var meta metadataOf
		_ = json.Unmarshal([]byte(fmt.Sprint(e.Metadata)), &meta) // of another program, maybe: then it has no name
		out = append(out, &pb.Member{Name: meta.Name, ClientURLs: []string{e.Addr}})
	}
	slices.SortFunc(out, func(a, b *pb.Member) int { return cmp.Compare(a.ClientURLs[0], b.ClientURLs[0]) })
	if len(out) == 0 {
		host, _ := os.Hostname()
		return []*pb.Member{{Name: host, ClientURLs: []string{n.URL}}}
	}
	return out
}

// metadataOf is what a proxy says of itself, as a text of JSON, beside its address.
type metadataOf struct {
	Name string `json:"name"`
}

// register keeps this proxy's address under the prefix, until the context ends.
func (n *naming) register(ctx context.Context) {
	for {
		session, err := n.announce(ctx)
		if err != nil && ctx.Err() == nil {
			n.logger.Warn("this proxy could not be registered, which is tried again", "prefix", n.Prefix, "err", err)
		}
		if err == nil {
			n.logger.Info("registered session with lease", "addr", n.URL, "lease-ttl", n.TTL.Seconds())
			select {
			case <-session.Done():
				n.logger.Warn("the registration of this proxy has expired: it registers again")
			case <-ctx.Done():
				ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), namingPause)
				_, _ = n.client.Revoke(ended, session.Lease()) // else the address stays until the lease expires
				cancel()
			}
		}
		if broadcast.Pause(ctx, namingPause) != nil {
			return
		}
	}
}

func (n *naming) announce(ctx context.Context) (*concurrency.Session, error) {
	manager, err := endpoints.NewManager(n.client, n.Prefix)
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(n.client, concurrency.WithTTL(int(n.TTL.Seconds())))
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	meta, err := json.Marshal(metadataOf{Name: host})
	if err == nil {
		err = manager.AddEndpoint(ctx, n.Prefix+"/"+n.URL,
			endpoints.Endpoint{Addr: n.URL, Metadata: string(meta)}, clientv3.WithLease(session.Lease()))
	}
	if err != nil {
		session.Orphan()
		return nil, err
	}
	return session, nil
}

// watchNamed keeps the list of registered proxies, until the context ends.
func (n *naming) watchNamed(ctx context.Context) {
	for {
		manager, err := endpoints.NewManager(n.client, n.Prefix)
		var updates endpoints.WatchChannel
		if err == nil {
			updates, err = manager.NewWatchChannel(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.logger.Warn("the registered proxies are not known yet", "prefix", n.Prefix, "err", err)
		}
		n.forget()
		for more := err == nil; more; {
			var some []*endpoints.Update
			if some, more = <-updates; more {
				n.update(some)
			}
		}
		if broadcast.Pause(ctx, namingPause) != nil {
			return
		}
	}
}
