package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// plan is what the command line asks for.
type plan struct {
	servers        []server
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
type episode func(context.Context, *plan, server) ([]figures, error)

var episodes = map[string]episode{
	"watch": fanOut, "memory": memory, "start": startUp, "kill-leader": killLeader,
	"add-voter":        disturbed("add-voter", addVoter),
	"remove-leader":    disturbed("remove-leader", removeLeader),
	"replace-leader":   disturbed("replace-leader", replaceLeader),
	"replace-follower": disturbed("replace-follower", replaceFollower),
	"learner-snapshot": learnerSnapshot,
	"expiry":           func(ctx context.Context, p *plan, s server) ([]figures, error) { return p.expiry.run(ctx, s, p.dir) },
}

// load runs one closed loop on a running cluster.
func (c *cluster) load(ctx context.Context, p *plan, workload string, clients int) (figures, error) {
	f := newFigures(fmt.Sprintf("%s c=%d", workload, clients))
	workers, err := openWorkers(ctx, c, clients)
	if err != nil {
		return f, err
	}
	from, to := c.closedLoop(ctx, workers, operations[workload], p.warm, p.length)
	f.set(residentMiB, c.resident("VmHWM"))
	f.charge(from, to, workers)
	return f, errors.Join(ctx.Err(), closeWorkers(workers))
}

// memory writes many values once and looks at what the members hold then, and held at most.
func memory(ctx context.Context, p *plan, s server) (_ []figures, err error) {
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	f, peak := newFigures(fmt.Sprintf("memory %d", p.values)), newFigures(fmt.Sprintf("memory %d, peak", p.values))
	from := c.read()
	if err := fill(ctx, c, p.values, func(i int) string { return fmt.Sprintf("m%09d", i) }); err != nil {
		return nil, err
	}
	to := c.read()
	f.set(perSecond, float64(p.values)/to.at.Sub(from.at).Seconds())
	f.set(serverMicros, micros(to.servers-from.servers)/float64(p.values))
	f.set(clientMicros, micros(to.generator-from.generator)/float64(p.values))
	f.set(residentMiB, c.resident("VmRSS"))
	peak.set(residentMiB, c.resident("VmHWM"))
	return []figures{f, peak}, nil
}

// startUp times a cluster from exec to the last member's readiness: without data, and after a restart with data.
func startUp(ctx context.Context, p *plan, s server) (_ []figures, err error) {
	c, took, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	fresh, again := newFigures("start, fresh"), newFigures("start, restarted")
	fresh.set(waitMillis, millis(took))
	if err := fill(ctx, c, keyCount, keyAt); err != nil {
		return nil, err
	}
	c.stop()
	if took, err = c.start(ctx); err != nil {
		return nil, err
	}
	again.set(waitMillis, millis(took))
	return []figures{fresh, again}, nil
}

// killLeader kills the leader's process. Nobody but the probing clients writes.
func killLeader(ctx context.Context, p *plan, s server) (_ []figures, err error) {
	c, err := filledCluster(ctx, p, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	leader, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	f, err := c.probe(ctx, "kill-leader", func(context.Context) error {
		leader.signal(syscall.SIGKILL)
		return nil
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-leader.ended:
		return []figures{f}, c.succeeded(ctx, leader)
	default:
		return nil, fmt.Errorf("%s outlived its SIGKILL", leader.name)
	}
}

func filledCluster(ctx context.Context, p *plan, s server) (*cluster, error) {
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	if err := fill(ctx, c, keyCount, keyAt); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

// succeeded wants all but the former leader to follow another one: else nothing was measured.
func (c *cluster) succeeded(ctx context.Context, former *member) error {
	for _, m := range c.members {
		if m == former {
			continue
		}
		status, err := c.control.Status(ctx, m.clientAddr)
		if err != nil {
			return err
		}
		if status.Leader == 0 || status.Leader == former.id {
			return fmt.Errorf("%s follows %x, and %s of that id is dead", m.name, status.Leader, former.name)
		}
	}
	return nil
}
