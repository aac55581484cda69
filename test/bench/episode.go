package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"syscall"
)

// episodes are the workloads that need a cluster of their own.
var episodes = map[string]episode{
	"watch": fanOut, "memory": memory, "start": startUp, "kill-leader": killLeader,
	"add-voter":        disturbed("add-voter", addVoter),
	"remove-leader":    disturbed("remove-leader", removeLeader),
	"replace-leader":   disturbed("replace-leader", replaceLeader),
	"replace-follower": disturbed("replace-follower", replaceFollower),
	"learner-snapshot": learnerSnapshot,
	"range-1000":       lists("range-1000", rangeClients, listPart),
	"stream-100000":    lists("stream-100000", streamClients, streamAll),
	"expiry": func(ctx context.Context, p *plan, s cluster.Server) ([]figures.Row, error) {
		return p.expiry.run(ctx, s, p.dir)
	},
}

// closed runs one closed loop on a running cluster.
func closed(ctx context.Context, c *cluster.Cluster, p *plan, workload string, clients int) (figures.Row, error) {
	f := figures.NewRow(fmt.Sprintf("%s c=%d", workload, clients))
	workers, err := load.Open(ctx, c, clients)
	if err != nil {
		return f, err
	}
	operate := load.Operations[workload]
	// Once before it counts: on a busy machine the leases of keepalive are not granted within the warm-up.
	if err := load.Each(workers, func(w *load.Worker) error { return operate(ctx, w) }); err != nil {
		return f, errors.Join(err, load.Close(workers))
	}
	from, to := load.ClosedLoop(ctx, c, workers, operate, p.warm, p.length)
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, workers)
	return f, errors.Join(ctx.Err(), load.Close(workers))
}

// memory writes many values once and looks at what the members hold then, and held at most, and what a restart takes.
func memory(ctx context.Context, p *plan, s cluster.Server) (_ []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	f, peak := figures.NewRow(fmt.Sprintf("memory %d", p.values)), figures.NewRow(fmt.Sprintf("memory %d, peak", p.values))
	from := c.Read()
	if err := load.Fill(ctx, c, p.values, func(i int) string { return fmt.Sprintf("m%09d", i) }); err != nil {
		return nil, err
	}
	to := c.Read()
	f.Set(figures.PerSecond, float64(p.values)/to.At.Sub(from.At).Seconds())
	f.Set(figures.ServerMicros, figures.Micros(to.Servers-from.Servers)/float64(p.values))
	f.Set(figures.ClientMicros, figures.Micros(to.Generator-from.Generator)/float64(p.values))
	f.Set(figures.ResidentMiB, c.Resident("VmRSS"))
	peak.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	again := figures.NewRow(fmt.Sprintf("memory %d, restarted", p.values))
	c.Stop()
	took, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	again.Set(figures.WaitMillis, figures.Millis(took))
	again.Set(figures.ResidentMiB, c.Resident("VmRSS"))
	return []figures.Row{f, peak, again}, nil
}

// startUp times a cluster from exec to the last member's readiness: without data, and after a restart with data.
func startUp(ctx context.Context, p *plan, s cluster.Server) (_ []figures.Row, err error) {
	c, took, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	fresh, again := figures.NewRow("start, fresh"), figures.NewRow("start, restarted")
	fresh.Set(figures.WaitMillis, figures.Millis(took))
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
	c.Stop()
	if took, err = c.Start(ctx); err != nil {
		return nil, err
	}
	again.Set(figures.WaitMillis, figures.Millis(took))
	return []figures.Row{fresh, again}, nil
}

// killLeader kills the leader's process. Nobody but the probing clients writes.
func killLeader(ctx context.Context, p *plan, s cluster.Server) (_ []figures.Row, err error) {
	c, err := filledCluster(ctx, p, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	leader, err := c.Leader(ctx)
	if err != nil {
		return nil, err
	}
	f, err := load.Probe(ctx, c, "kill-leader", func(context.Context) error {
		leader.Signal(syscall.SIGKILL)
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-leader.Ended:
		return []figures.Row{f}, succeeded(ctx, c, leader)
	default:
		return nil, fmt.Errorf("%s outlived its SIGKILL", leader.Name)
	}
}

func filledCluster(ctx context.Context, p *plan, s cluster.Server) (*cluster.Cluster, error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// succeeded wants all but the former leader to follow another one: else nothing was measured.
func succeeded(ctx context.Context, c *cluster.Cluster, former *cluster.Member) error {
	for _, m := range c.Members {
		if m == former {
			continue
		}
		status, err := c.Control.Status(ctx, m.ClientAddr)
		if err != nil {
			return err
		}
		if status.Leader == 0 || status.Leader == former.ID {
			return fmt.Errorf("%s follows %x, and %s of that id is dead", m.Name, status.Leader, former.Name)
		}
	}
	return nil
}
