package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"sync/atomic"
	"time"
)

const (
	faultWriters  = 16 // closed loops beside the probes
	changeTimeout = time.Minute
)

// disturbed is one membership change under load. Errors count the probes and the writes of the load.
func disturbed(name string, change func(context.Context, *cluster.Cluster) error) planner {
	return alone(trial{filled: true, do: func(ctx context.Context, b *bed) ([]figures.Row, error) {
		var f figures.Row
		failed, err := underLoad(ctx, b.Cluster, func() (err error) {
			f, err = load.Probe(ctx, b.Cluster, name, func(ctx context.Context) error {
				limited, cancel := context.WithTimeout(ctx, changeTimeout)
				defer cancel()
				return change(limited, b.Cluster)
			})
			return err
		})
		f.Set(figures.Failures, f.Values[figures.Failures]+float64(failed))
		return []figures.Row{f}, err
	}})
}

// underLoad does something while writers load the cluster, and returns how many of their writes failed.
func underLoad(ctx context.Context, c *cluster.Cluster, do func() error) (failed int, err error) {
	clients, err := c.ConnectAll(faultWriters)
	workers := make([]*load.Worker, len(clients))
	for i, client := range clients {
		workers[i] = &load.Worker{Number: i, Client: client, Keys: load.NewChooser(uint64(i))}
	}
	defer func() { _ = load.Close(workers) }() // says only that one was cut off
	if err != nil {
		return 0, err
	}
	var phase atomic.Int32
	phase.Store(load.Measuring)
	wait := load.StartLoop(ctx, workers, load.Put, &phase)
	err = do()
	phase.Store(load.Ending)
	wait()
	for _, w := range workers {
		failed += w.Errors
	}
	return failed, err
}

// addVoter adds a voter at once, as its documentation tells an etcd operator not to, and starts it.
func addVoter(ctx context.Context, c *cluster.Cluster) error {
	m, err := c.Admit(ctx, c.Control.MemberAdd)
	if err != nil {
		return err
	}
	_, err = c.AwaitReady(ctx, m)
	return err
}

func removeLeader(ctx context.Context, c *cluster.Cluster) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	return c.Dismiss(ctx, leader)
}

func replaceLeader(ctx context.Context, c *cluster.Cluster) error {
	if err := c.Promoted(ctx); err != nil {
		return err
	}
	return removeLeader(ctx, c)
}

func replaceFollower(ctx context.Context, c *cluster.Cluster) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	follower := c.Members[0]
	if follower == leader {
		follower = c.Members[1]
	}
	if err := c.Promoted(ctx); err != nil {
		return err
	}
	return c.Dismiss(ctx, follower)
}
