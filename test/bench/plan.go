package main

import (
	"context"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
)

// plan is what the command line asks for.
type plan struct {
	servers        []cluster.Server
	dir            string
	workloads      []string
	clients        []int
	watchers       []int
	watchStreams   int
	rounds, values int
	snapshotMiB    int
	expiry         expiry
	warm, length   time.Duration
}

// episode is a workload that needs a cluster of its own.
type episode func(context.Context, *plan, cluster.Server) ([]figures.Row, error)
