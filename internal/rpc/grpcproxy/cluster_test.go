package grpcproxy_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/rpc/grpcproxy"
	"github.com/quorate/quorate/internal/server"
)

// startServer runs a cluster of one member, and returns its client address.
func startServer(t *testing.T) string {
	t.Helper()
	client, peer := testnet.Address(t), "http://"+testnet.Address(t)
	c, err := config.Load([]string{"--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"), "--listen-client-urls=http://" + client,
		"--advertise-client-urls=http://" + client, "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=m=" + peer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), c, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return client
}

// startProxy serves at an address of its own, under which it registers if a prefix is given.
func startProxy(t *testing.T, member, namespace, prefix string) *clientv3.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	p, err := grpcproxy.New(grpcproxy.Options{
		Members: grpcproxy.Members{Endpoints: []string{member}, MaxRecvBytes: 64 << 20},
		Clients: grpcproxy.Clients{MaxSendBytes: 1 << 20, MaxConcurrentStreams: 1000},
		Naming:  grpcproxy.Naming{URL: address, Prefix: prefix, TTL: 5 * time.Second}, Namespace: namespace,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.ServeClients(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := errors.Join(<-served, p.Close()); err != nil {
			t.Error(err)
		}
	})
	return connect(t, address)
}

func connect(t *testing.T, address string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Ensure that etcd's client reads, writes, watches, locks and renews leases within a namespace, and that proxies with one prefix
// tell clients the addresses of both.
func TestProxy_cluster(t *testing.T) {
	member := startServer(t)
	inside, outside := startProxy(t, member, "ns/", ""), connect(t, member)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := inside.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithPrevKV())
	lease, err := inside.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Put(ctx, "other", "0", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := inside.Put(ctx, "k", "1", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(t, ctx, inside); !slices.Equal(got, []string{"k"}) {
		t.Errorf("inside: got %v", got)
	}
	if got := keysOf(t, ctx, outside); !slices.Equal(got, []string{"ns/k", "other"}) {
		t.Errorf("outside: got %v", got)
	}
	if e := (<-events).Events; len(e) != 1 || string(e[0].Kv.Key) != "k" {
		t.Errorf("got events %v", e)
	}
	ttl, err := inside.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
	if err != nil || len(ttl.Keys) != 1 || string(ttl.Keys[0]) != "k" {
		t.Errorf("got %v, %v", ttl, err)
	}
	if _, err := inside.KeepAliveOnce(ctx, lease.ID); err != nil {
		t.Error(err)
	}
	session, err := concurrency.NewSession(inside, concurrency.WithLease(lease.ID))
	if err != nil {
		t.Fatal(err)
	}
	lock := concurrency.NewMutex(session, "lock")
	if err := errors.Join(lock.Lock(ctx), lock.Unlock(ctx)); err != nil {
		t.Error(err)
	}
	registered := outside.Watch(ctx, "proxies/", clientv3.WithPrefix())
	first, second := startProxy(t, member, "", "proxies"), startProxy(t, member, "", "proxies")
	for n := 0; n < 2; {
		n += len((<-registered).Events)
	}
	want := slices.Sorted(slices.Values([]string{first.Endpoints()[0], second.Endpoints()[0]}))
	for {
		if err := first.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(slices.Sorted(slices.Values(first.Endpoints())), want) {
			return
		}
	}
}

func keysOf(t *testing.T, ctx context.Context, c *clientv3.Client) (keys []string) {
	t.Helper()
	answer, err := c.Get(ctx, "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range answer.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}
