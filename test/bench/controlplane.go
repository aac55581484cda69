package main

import (
	"github.com/quorate/quorate/test/bench/cluster"

	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
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

// controlPlane is the load of a Kubernetes control plane, at one rate or at the highest one.
type controlPlane struct {
	load         k8s.Options
	rate         float64
	warm, length time.Duration
	findMax      bool
	limits       searchLimits
	fault        func(context.Context, *cluster.Cluster) error // nil: none
}

// searchLimits bound a search for the highest rate.
type searchLimits struct{ bound, step, total time.Duration }

func kubernetes(f *flags) func() ([]trial, error) {
	given := controlPlaneFlags(f)
	kill := f.yes("kill-leader", "kill the leader in the middle, and start it again three seconds later")
	replace := f.yes("replace-member", "replace a follower in the middle: add a learner, promote it, remove the follower")
	return func() ([]trial, error) {
		p := given()
		switch {
		case (*kill || *replace) && p.findMax || *kill && *replace:
			return nil, errors.New("want only one of --find-max, --kill-leader and --replace-member")
		case *kill:
			p.fault = killAndRestart
		case *replace:
			p.fault = replaceFollower
		}
		name := fmt.Sprintf("k8s, %.0f mutations a second", p.rate)
		if p.findMax {
			name = fmt.Sprintf("k8s, the highest rate with a p99 below %s", p.limits.bound)
		}
		return []trial{{name: name, do: p.measure}}, nil
	}
}

// controlPlaneFlags are the flags of the load.
func controlPlaneFlags(f *flags) func() *controlPlane {
	w := f.window()
	values := f.choice("values", "compressible", "compressible, as protobuf objects are, or random", "compressible", "random")
	nodes := f.number("nodes", "2000", "nodes of the Kubernetes cluster", leastNodes, math.MaxInt)
	pods := take(f, "pods", "0", fmt.Sprintf("pods that run at any time; 0: %d a node", podsPerNode), parsePods)
	podBytes := f.number("pod-bytes", "10240", "size of a pod", leastPod, mostPod)
	rate := f.decimal("rate", "0", "mutations a second; 0: what so many nodes make, 0.22 each", 0, math.MaxInt32)
	// Leases are granted in whole seconds.
	eventTTL := f.duration("event-ttl", "10s", "how long events are kept at least; an hour in Kubernetes", leastTTL)
	listEvery := f.duration("list-every", "3s", "a list of all pods, by turns paged and streamed", 1)
	compactEvery := f.duration("compact-every", "10s", "compactions; five minutes in Kubernetes", 1)
	checkEvery := f.duration("check-every", "5m", "each API server compares each of its caches with the store after so long, "+
		"to half as long again", 1)
	findMax := f.yes("find-max", "look for the highest rate at which the p99 of mutations is below --bound")
	bound := f.duration("bound", "100ms", "find-max: what the p99 of mutations stays below", 1)
	step := f.duration("step", "6s", "find-max: measured part of each step, after a second that does not count", 1)
	total := f.duration("search", "1m", "find-max: begin no further step after this time, for each server and round", 0)
	return func() *controlPlane {
		return &controlPlane{
			load: k8s.Options{Nodes: *nodes, Pods: cmp.Or(*pods, podsPerNode**nodes), PodBytes: *podBytes,
				Random: *values == "random", EventTTL: *eventTTL, ListEvery: *listEvery, CompactEvery: *compactEvery,
				CheckEvery: *checkEvery},
			rate: cmp.Or(*rate, k8s.NaturalRate(*nodes)), warm: *w.warm, length: *w.length, findMax: *findMax,
			limits: searchLimits{*bound, *step, *total},
		}
	}
}

func parsePods(text string) (int, error) {
	pods, err := strconv.Atoi(text)
	if err == nil && pods != 0 && pods < podsPerNode*leastNodes {
		err = fmt.Errorf("want at least %d pods", podsPerNode*leastNodes)
	}
	return pods, err
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
