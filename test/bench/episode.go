package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
)

// alone is the planner of a workload that takes no flags.
func alone(t trial) planner {
	return func(*flags) func() ([]trial, error) {
		return func() ([]trial, error) { return []trial{t}, nil }
	}
}

// closedLoops has clients repeat an operation.
func closedLoops(operation string) planner {
	return func(f *flags) func() ([]trial, error) {
		w, clients := f.window(), f.numbers("clients", "1,64,256", "numbers of closed-loop clients")
		do := func(ctx context.Context, b *bed) (all []figures.Row, err error) {
			for _, n := range *clients {
				row, err := closed(ctx, b.Cluster, w, operation, n)
				if err != nil {
					return all, fmt.Errorf("%s: %w", operation, err)
				}
				all = append(all, row)
			}
			return all, nil
		}
		return func() ([]trial, error) { return []trial{{filled: true, shares: true, do: do}}, nil }
	}
}

// closedName is what the row of a closed loop is called.
func closedName(workload string, clients int) string {
	return fmt.Sprintf("%s c=%d", workload, clients)
}

// closed runs one closed loop on a running cluster.
func closed(ctx context.Context, c *cluster.Cluster, w window, workload string, clients int) (figures.Row, error) {
	f := figures.NewRow(closedName(workload, clients))
	workers, err := load.Open(ctx, c, clients)
	if err != nil {
		return f, err
	}
	operate := load.Operations[workload]
	// Once before it counts: on a busy machine the leases of keepalive are not granted within the warm-up.
	if err := load.Each(workers, func(w *load.Worker) error { return operate(ctx, w) }); err != nil {
		return f, errors.Join(err, load.Close(workers))
	}
	from, to := load.ClosedLoop(ctx, c, workers, operate, *w.warm, *w.length)
	f.Set(figures.ResidentMiB, c.Resident("VmHWM"))
	load.Charge(&f, from, to, workers)
	return f, errors.Join(ctx.Err(), load.Close(workers))
}

// memory writes many values once and looks at what the members hold then, and held at most, and what a restart takes.
func memory(f *flags) func() ([]trial, error) {
	values := f.number("values", "1000000", "memory: how many values of 256 bytes to write", 1, math.MaxInt)
	do := func(ctx context.Context, b *bed) ([]figures.Row, error) {
		name, n := fmt.Sprintf("memory %d", *values), float64(*values)
		full, peak, again := figures.NewRow(name), figures.NewRow(name+", peak"), figures.NewRow(name+", restarted")
		from := b.Read()
		err := load.Fill(ctx, b.Cluster, *values, func(i int) string { return fmt.Sprintf("m%09d", i) })
		if err != nil {
			return nil, err
		}
		to := b.Read()
		full.Set(figures.PerSecond, n/to.At.Sub(from.At).Seconds())
		full.Set(figures.ServerMicros, figures.Micros(to.Servers-from.Servers)/n)
		full.Set(figures.ClientMicros, figures.Micros(to.Generator-from.Generator)/n)
		full.Set(figures.ResidentMiB, b.Resident("VmRSS"))
		peak.Set(figures.ResidentMiB, b.Resident("VmHWM"))
		err = restarted(ctx, b, &again)
		return []figures.Row{full, peak, again}, err
	}
	return func() ([]trial, error) { return []trial{{do: do}}, nil }
}

// restarted measures a restart of all members on the data that they have.
func restarted(ctx context.Context, b *bed, row *figures.Row) error {
	b.Stop()
	took, err := b.Cluster.Start(ctx)
	row.Set(figures.WaitMillis, figures.Millis(took))
	row.Set(figures.ResidentMiB, b.Resident("VmRSS"))
	return err
}

// startUp times a cluster from exec to the last member's readiness: without data, and after a restart with data.
func startUp(ctx context.Context, b *bed) ([]figures.Row, error) {
	fresh, again := figures.NewRow("start, fresh"), figures.NewRow("start, restarted")
	fresh.Set(figures.WaitMillis, figures.Millis(b.Took))
	if err := load.Fill(ctx, b.Cluster, load.KeyCount, load.KeyAt); err != nil {
		return nil, err
	}
	err := restarted(ctx, b, &again)
	return []figures.Row{fresh, again}, err
}

// killLeader kills the leader's process. No client but the probing ones writes.
func killLeader(ctx context.Context, b *bed) ([]figures.Row, error) {
	leader, err := b.Leader(ctx)
	if err != nil {
		return nil, err
	}
	f, err := load.Probe(ctx, b.Cluster, "kill-leader", func(context.Context) error {
		leader.Signal(syscall.SIGKILL)
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-leader.Ended:
		return []figures.Row{f}, succeeded(ctx, b.Cluster, leader)
	default:
		return nil, fmt.Errorf("%s outlived its SIGKILL", leader.Name)
	}
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
