package cluster

import (
	"github.com/quorate/quorate/test/bench/figures"

	"context"
	"runtime"
	"sync"
	"time"
)

const leaderPolled = 500 * time.Millisecond

// Meters read what the machine has spent when the window opens and closes.
type Meters struct {
	cluster                *Cluster
	dir                    string
	From, To               Reading
	writtenFrom, writtenTo int64
	countsFrom, countsTo   counts
	known, opened          bool
}

// Meter makes meters of a cluster whose data lies in dir, on the device that is looked at.
func (c *Cluster) Meter(dir string) *Meters { return &Meters{cluster: c, dir: dir} }

// Open begins the window.
func (m *Meters) Open() {
	m.opened = true
	m.countsFrom = m.cluster.counted(context.Background())
	m.cluster.ForgetPeaks()
	m.writtenFrom, m.known = deviceWritten(m.dir)
	m.From = m.cluster.Read()
}

// Close ends it.
func (m *Meters) Close() {
	m.To = m.cluster.Read()
	m.writtenTo, _ = deviceWritten(m.dir)
	m.countsTo = m.cluster.counted(context.Background())
}

// Charge sets what happened in the window, in which so many mutations were done.
func (m *Meters) Charge(f *figures.Row, done float64) {
	if !m.opened || done == 0 {
		return
	}
	servers, generator := m.To.Servers-m.From.Servers, m.To.Generator-m.From.Generator
	f.Set(figures.ServerMicros, figures.Micros(servers)/done)
	f.Set(figures.ClientMicros, figures.Micros(generator)/done)
	f.Set(figures.OthersPercent, Others(m.From, m.To))
	f.Set(figures.ResidentMiB, m.cluster.Resident("VmHWM"))
	f.Set(figures.DiskMiB, float64(diskBytes(m.cluster.dir))/(1<<20))
	if m.known {
		f.Set(figures.DeviceMiB, float64(m.writtenTo-m.writtenFrom)/(1<<20))
	}
}

// Parts is where the bytes went that were written in the window, of a load with so many mutations.
func (m *Meters) Parts(load string, done float64) WrittenParts {
	return WrittenParts{load, done, m.countsTo.since(m.countsFrom)}
}

// Reading is the state of the meters at one instant.
type Reading struct {
	At                           time.Time
	Servers, Generator, Everyone time.Duration
}

// Read reads the meters of the processors now.
func (c *Cluster) Read() Reading {
	return Reading{At: time.Now(), Servers: c.cpuTime(), Generator: ownCPUTime(), Everyone: machineTime()}
}

// Others is what other processes took of the machine's processor time between two readings, in percent.
func Others(from, to Reading) float64 {
	others := max(0, to.Everyone-from.Everyone-(to.Servers-from.Servers)-(to.Generator-from.Generator))
	return 100 * float64(others) / float64(to.At.Sub(from.At)) / float64(runtime.NumCPU())
}

// CountElections looks who leads, again and again, until the function that it returns is called, which says how often that
// has changed.
func (c *Cluster) CountElections(ctx context.Context) (count func() int) {
	ctx, cancel := context.WithCancel(ctx)
	addresses := make([]string, len(c.Members))
	for i, m := range c.Members {
		addresses[i] = m.ClientAddr
	}
	changes := 0
	var group sync.WaitGroup
	group.Go(func() {
		leader, term := uint64(0), uint64(0)
		for i := 0; ctx.Err() == nil; i++ {
			limited, cancel := context.WithTimeout(ctx, leaderPolled)
			status, err := c.Control.Status(limited, addresses[i%len(addresses)])
			cancel()
			// The word of an old follower about an old term is no news.
			if err == nil && status.Leader != 0 && status.RaftTerm > term {
				if leader != 0 {
					changes++
				}
				leader, term = status.Leader, status.RaftTerm
			}
			Pause(ctx, leaderPolled)
		}
	})
	return func() int {
		cancel()
		group.Wait()
		return changes
	}
}
