package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	pprof "github.com/google/pprof/profile"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/cpuparts"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// stageKinds are what a workload of stages measures.
var stageKinds = []figures.Kind{figures.PerSecond, figures.BatchPuts, figures.LoopMicros, figures.DiskMicros,
	figures.ApplyMicros, figures.WatchMicros, figures.ClientsMicros, figures.PeersMicros, figures.RestMicros,
	figures.BoundPerSecond}

// laneKinds are the columns of the lanes.
var laneKinds = [cpuparts.Lanes]figures.Kind{
	cpuparts.LoopLane: figures.LoopMicros, cpuparts.DiskLane: figures.DiskMicros, cpuparts.ApplyLane: figures.ApplyMicros,
	cpuparts.WatchLane: figures.WatchMicros, cpuparts.ClientLane: figures.ClientsMicros, cpuparts.PeerLane: figures.PeersMicros,
	cpuparts.OtherLanes: figures.RestMicros,
}

// oneAtATime are the lanes that one goroutine serves: the longest of them bounds what a member can do, whatever its cores.
var oneAtATime = []figures.Kind{figures.LoopMicros, figures.DiskMicros, figures.ApplyMicros}

// stages measures the processor time that each lane of the leader takes for a put.
func stages(f *flags) func() ([]trial, error) {
	w := window{f.duration("warmup", "2s", "before each measurement", 0),
		f.duration("duration", "8s", "of each measurement, and of its profile", time.Second)}
	clients := f.numbers("clients", "1,16,64,256,1024", "numbers of closed-loop clients: with them grow the batches")
	do := func(ctx context.Context, b *bed) (all []figures.Row, err error) {
		for _, n := range *clients {
			row, err := staged(ctx, b.Cluster, w, n)
			if err != nil {
				return all, err
			}
			all = append(all, row)
		}
		return all, nil
	}
	return func() ([]trial, error) {
		return []trial{{filled: true, on: cluster.Conditions{Flags: []string{"--enable-pprof"}}, do: do}}, nil
	}
}

// walSyncs counts the syncs of a member's log.
const walSyncs = "etcd_disk_wal_fsync_duration_seconds_count"

// staged loads a cluster with puts of so many clients, and profiles the leader meanwhile.
func staged(ctx context.Context, c *cluster.Cluster, w window, clients int) (figures.Row, error) {
	f := figures.NewRow(closedName("put", clients))
	leader, err := c.Leader(ctx)
	if err != nil {
		return f, err
	}
	workers, err := load.Open(ctx, c, clients)
	if err != nil {
		return f, err
	}
	var profiled *pprof.Profile
	var syncs float64
	var failed error
	var group sync.WaitGroup
	group.Go(func() {
		cluster.Pause(ctx, *w.warm)
		before, wrong := scrape(ctx, leader.ClientAddr, walSyncs)
		all, err := c.Profiles(ctx, *w.length)
		after, wrongAfter := scrape(ctx, leader.ClientAddr, walSyncs)
		if failed = errors.Join(wrong, err, wrongAfter); failed == nil {
			profiled, syncs = all[slices.Index(c.Members, leader)], after[walSyncs]-before[walSyncs]
		}
	})
	from, to := load.ClosedLoop(ctx, c, workers, load.Operations["put"], *w.warm, *w.length)
	load.Charge(&f, from, to, workers)
	group.Wait()
	if err := errors.Join(failed, load.Close(workers)); err != nil {
		return f, err
	}
	chargeLanes(&f, profiled, *w.length, syncs)
	return f, nil
}

// chargeLanes sets what each lane took for a put, and what the longest would allow.
func chargeLanes(f *figures.Row, p *pprof.Profile, length time.Duration, syncs float64) {
	puts := f.Values[figures.PerSecond] * length.Seconds()
	if puts <= 0 {
		return
	}
	for lane, nanos := range cpuparts.LaneNanos(p) {
		f.Set(laneKinds[lane], nanos/puts/1000)
	}
	longest := 0.0
	for _, k := range oneAtATime {
		longest = max(longest, f.Values[k])
	}
	if longest > 0 {
		f.Set(figures.BoundPerSecond, 1e6/longest)
	}
	if syncs > 0 {
		f.Set(figures.BatchPuts, puts/syncs)
	}
}
