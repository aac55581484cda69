package server_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/server"
)

// Ensure that a member does not start with less memory than its leases need, also if its store has none of them yet, and only the
// log does; and that it starts again with more.
func TestStart_tooLittleMemory(t *testing.T) {
	const leases = 3
	client, peer := testnet.Address(t), testnet.Address(t)
	c := loadConfig(t, "--name=m", "--data-dir", filepath.Join(t.TempDir(), "d"), "--listen-client-urls=http://"+client,
		"--advertise-client-urls=http://"+client, "--listen-peer-urls=http://"+peer,
		"--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=m=http://"+peer)
	start := func(room int64) (*server.Server, error) {
		shares := memory.Divide(memory.MinLimit)
		shares.Limit, shares.State.Leases = 0, room*lease.EachBytes // so that no limit's unit counts
		return server.Start(t.Context(), c, server.Options{Logger: slog.New(slog.DiscardHandler), Memory: shares})
	}
	s, err := start(2 * leases)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{client}})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	for range leases {
		if _, err := etcd.Grant(t.Context(), 600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s, err = start(leases - 1); err == nil {
		_ = s.Stop(context.Background())
		t.Error("it started with memory for one lease less")
	} else if !strings.Contains(err.Error(), "--memory=") || !strings.Contains(err.Error(), "the leases (3) take") {
		t.Errorf("with memory for one lease less: %v", err)
	}
	if s, err = start(leases); err != nil {
		t.Fatalf("with memory for all: %v", err)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
