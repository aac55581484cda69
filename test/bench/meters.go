package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const leaderPolled = 500 * time.Millisecond

// meters read what the machine has spent when the window opens and closes.
type meters struct {
	cluster                *cluster
	dir                    string
	from, to               reading
	writtenFrom, writtenTo int64
	countsFrom, countsTo   counts
	known, opened          bool
}

func (c *cluster) meter(dir string) *meters { return &meters{cluster: c, dir: dir} }

func (m *meters) open() {
	m.opened = true
	m.countsFrom = m.cluster.counted(context.Background())
	m.cluster.forgetPeaks()
	m.writtenFrom, m.known = deviceWritten(m.dir)
	m.from = m.cluster.read()
}

func (m *meters) close() {
	m.to = m.cluster.read()
	m.writtenTo, _ = deviceWritten(m.dir)
	m.countsTo = m.cluster.counted(context.Background())
}

// charge sets what happened in the window, in which so many mutations were done.
func (m *meters) charge(f *figures, done float64) {
	if !m.opened || done == 0 {
		return
	}
	servers, generator := m.to.servers-m.from.servers, m.to.generator-m.from.generator
	f.set(serverMicros, micros(servers)/done)
	f.set(clientMicros, micros(generator)/done)
	others := max(0, m.to.everyone-m.from.everyone-servers-generator)
	f.set(othersPercent, 100*float64(others)/float64(m.to.at.Sub(m.from.at))/float64(runtime.NumCPU()))
	f.set(residentMiB, m.cluster.resident("VmHWM"))
	f.set(diskMiB, float64(diskBytes(m.cluster.dir))/(1<<20))
	if m.known {
		f.set(deviceMiB, float64(m.writtenTo-m.writtenFrom)/(1<<20))
	}
}

// countElections looks who leads, again and again, until the function that it returns is called, which says how often that
// has changed.
func (c *cluster) countElections(ctx context.Context) (count func() int) {
	ctx, cancel := context.WithCancel(ctx)
	addresses := make([]string, len(c.members))
	for i, m := range c.members {
		addresses[i] = m.clientAddr
	}
	changes := 0
	var group sync.WaitGroup
	group.Go(func() {
		leader, term := uint64(0), uint64(0)
		for i := 0; ctx.Err() == nil; i++ {
			limited, cancel := context.WithTimeout(ctx, leaderPolled)
			status, err := c.control.Status(limited, addresses[i%len(addresses)])
			cancel()
			// What an old follower says of an old term is no news.
			if err == nil && status.Leader != 0 && status.RaftTerm > term {
				if leader != 0 {
					changes++
				}
				leader, term = status.Leader, status.RaftTerm
			}
			pause(ctx, leaderPolled)
		}
	})
	return func() int {
		cancel()
		group.Wait()
		return changes
	}
}
