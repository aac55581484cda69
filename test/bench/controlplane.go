package main

import (
	"github.com/quorate/quorate/test/bench/cluster"

	"context"
	"errors"
	"flag"
	"fmt"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

const (
	podsPerNode = 2
	leastNodes  = 10
	leastPod    = 1 << 10
	mostPod     = 1 << 20 // etcd takes requests of up to 1.5 MiB
	leastTTL    = 2 * time.Second
	downTime    = 3 * time.Second // of the leader that is killed
)

// controlPlane is what the command line asks for.
type controlPlane struct {
	servers      []cluster.Server
	dir          string
	load         k8s.Options
	values       string // compressible or random
	rate         float64
	rounds       int
	warm, length time.Duration
	findMax      bool
	limits       searchLimits
	fault        func(context.Context, *cluster.Cluster) error // nil: none
}

// searchLimits bound a search for the highest rate.
type searchLimits struct{ bound, step, total time.Duration }

func parseControlPlane(arguments []string) (*controlPlane, error) {
	p := &controlPlane{}
	flags := flag.NewFlagSet("k8s", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.Func("flags", "NAME=FLAG,FLAG for the members of one server", serverFlags(&p.servers))
	flags.StringVar(&p.values, "values", "compressible", "compressible, as protobuf objects are, or random")
	var kill, replace bool
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.IntVar(&p.load.Nodes, "nodes", 2000, "nodes of the Kubernetes cluster")
	flags.IntVar(&p.load.Pods, "pods", 0, fmt.Sprintf("pods that run at any time; 0: %d a node", podsPerNode))
	flags.IntVar(&p.load.PodBytes, "pod-bytes", 10<<10, "size of a pod")
	flags.Float64Var(&p.rate, "rate", 0, "mutations a second; 0: what so many nodes make, 0.22 each")
	flags.DurationVar(&p.load.EventTTL, "event-ttl", 10*time.Second, "how long events are kept at least; an hour in Kubernetes")
	flags.DurationVar(&p.load.ListEvery, "list-every", 3*time.Second, "a list of all pods, by turns paged and streamed")
	flags.DurationVar(&p.load.CompactEvery, "compact-every", 10*time.Second, "compactions; five minutes in Kubernetes")
	flags.IntVar(&p.rounds, "rounds", 2, "rounds; each takes every server once")
	flags.DurationVar(&p.warm, "warmup", 5*time.Second, "before the measured part")
	flags.DurationVar(&p.length, "duration", 20*time.Second, "of the measured part")
	flags.BoolVar(&p.findMax, "find-max", false, "look for the highest rate at which the p99 of mutations is below --bound")
	flags.DurationVar(&p.limits.bound, "bound", 100*time.Millisecond, "find-max: what the p99 of mutations stays below")
	flags.DurationVar(&p.limits.step, "step", 6*time.Second,
		"find-max: measured part of each step, after a second that does not count")
	flags.DurationVar(&p.limits.total, "search", time.Minute,
		"find-max: begin no further step after this time, for each server and round")
	flags.BoolVar(&kill, "kill-leader", false, "kill the leader in the middle, and start it again three seconds later")
	flags.BoolVar(&replace, "replace-member", false,
		"replace a follower in the middle: add a learner, promote it, remove the follower")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	switch {
	case len(p.servers) == 0 || p.dir == "" || p.rounds < 1 || flags.NArg() > 0:
		return nil, errors.New("k8s: want --server and --dir, at least one round, and nothing but flags")
	case p.values != "compressible" && p.values != "random":
		return nil, fmt.Errorf("k8s: no --values %q: compressible or random", p.values)
	case p.load.Nodes < leastNodes || p.load.Pods != 0 && p.load.Pods < podsPerNode*leastNodes || p.rate < 0:
		return nil, fmt.Errorf("k8s: want at least %d nodes, %d pods, and a rate that is not negative", leastNodes,
			podsPerNode*leastNodes)
	case p.load.PodBytes < leastPod || p.load.PodBytes > mostPod:
		return nil, fmt.Errorf("k8s: want pods of %d to %d bytes", leastPod, mostPod)
	case p.load.EventTTL < leastTTL:
		return nil, fmt.Errorf("k8s: want events for %s at least: leases are granted in whole seconds", leastTTL)
	case min(p.load.ListEvery, p.load.CompactEvery, p.length, p.limits.step, p.limits.bound) <= 0 || p.warm < 0:
		return nil, errors.New("k8s: want times that are not zero")
	case (kill || replace) && p.findMax || kill && replace:
		return nil, errors.New("k8s: want only one of --find-max, --kill-leader and --replace-member")
	}
	p.load.Random = p.values == "random"
	if kill {
		p.fault = killAndRestart
	} else if replace {
		p.fault = replaceFollower
	}
	if p.load.Pods == 0 {
		p.load.Pods = podsPerNode * p.load.Nodes
	}
	if p.rate == 0 {
		p.rate = k8s.NaturalRate(p.load.Nodes)
	}
	return p, nil
}

// killAndRestart kills the leader, and starts it on its data some seconds later.
func killAndRestart(ctx context.Context, c *cluster.Cluster) error {
	leader, err := c.Leader(ctx)
	if err != nil {
		return err
	}
	leader.Signal(syscall.SIGKILL)
	<-leader.Ended
	cluster.Pause(ctx, downTime)
	if err := c.Launch(leader); err != nil {
		return err
	}
	_, err = c.AwaitReady(ctx, leader)
	return err
}
