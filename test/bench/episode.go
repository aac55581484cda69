package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// plan is what the command line asks for.
type plan struct {
	servers        []server
	dir            string
	workloads      []string
	clients        []int
	rounds, values int
	warm, length   time.Duration
}

// episodes are the workloads that need a cluster of their own.
var episodes = map[string]func(context.Context, *plan, server) ([]figures, error){
	"memory": memory, "start": startUp, "kill-leader": killLeader,
}

// load runs one closed loop, or the watch fan-out, on a running cluster.
func (c *cluster) load(ctx context.Context, p *plan, workload string, clients int) (figures, error) {
	f := newFigures(fmt.Sprintf("%s c=%d", workload, clients))
	n := clients
	if workload == "watch" {
		n++ // the writer
	}
	workers, err := openWorkers(ctx, c, n)
	if err != nil {
		return f, err
	}
	var from, to reading
	if workload == "watch" {
		from, to, err = c.fanOut(ctx, workers, p.warm, p.length)
	} else {
		from, to = c.closedLoop(ctx, workers, operations[workload], p.warm, p.length)
	}
	f.set(residentMiB, c.resident("VmHWM"))
	f.charge(from, to, workers)
	if err := errors.Join(err, ctx.Err()); err != nil {
		return f, errors.Join(err, closeWorkers(workers))
	}
	return f, closeWorkers(workers)
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

// killLeader begins a write every 10 ms, whatever became of the earlier ones, and finds the longest time without a
// successful end of one from the leader's death on. The probing clients know all members.
func killLeader(ctx context.Context, p *plan, s server) (_ []figures, err error) {
	const interval, before, after, connections = 10 * time.Millisecond, 2 * time.Second, 10 * time.Second, 4
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	if err := fill(ctx, c, keyCount, keyAt); err != nil {
		return nil, err
	}
	leader, err := c.leader(ctx)
	if err != nil {
		return nil, err
	}
	var clients []*clientv3.Client
	for range connections {
		client, err := connect(c.control.Endpoints()...)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		clients = append(clients, client)
	}
	var probes probeLog
	var group sync.WaitGroup
	keys, pace := newChooser(0), time.NewTicker(interval)
	defer pace.Stop()
	begun, killed := time.Now(), time.Time{}
	for i := 0; ctx.Err() == nil && time.Since(begun) < before+after; i++ {
		if killed.IsZero() && time.Since(begun) >= before {
			killed = time.Now()
			leader.signal(syscall.SIGKILL)
		}
		key, value := keys.key(), keys.value()
		group.Go(func() {
			limited, cancel := context.WithTimeout(ctx, operationTimeout)
			defer cancel()
			_, err := clients[i%connections].Put(limited, key, value)
			probes.add(time.Now(), err)
		})
		<-pace.C
	}
	end := time.Now()
	group.Wait()
	f := newFigures("kill-leader")
	f.set(waitMillis, millis(longestGap(probes.succeeded, killed, end)))
	f.set(failures, float64(probes.failed))
	select {
	case <-leader.ended:
		return []figures{f}, errors.Join(ctx.Err(), c.succeeded(ctx, leader))
	default:
		return nil, fmt.Errorf("%s outlived its SIGKILL", leader.name)
	}
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

// probeLog takes the ends of probes, in any order.
type probeLog struct {
	mu        sync.Mutex
	succeeded []time.Time
	failed    int
}

func (l *probeLog) add(at time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		return
	}
	l.succeeded = append(l.succeeded, at)
}

// longestGap is the longest time between two ends that follow each other from begin to end, both borders included: the
// first gap begins with the last success before begin.
func longestGap(ends []time.Time, begin, end time.Time) time.Duration {
	slices.SortFunc(ends, time.Time.Compare)
	last, longest := begin, time.Duration(0)
	for _, at := range ends {
		switch {
		case at.After(end):
		case at.Before(begin):
			last = at
		default:
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, end.Sub(last))
}
