package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/sim"
	"github.com/quorate/quorate/internal/sim/stores"
	"github.com/quorate/quorate/internal/sim/tally"
)

// campaign is many seeds, run by workers until the time is over or a law is broken.
type campaign struct {
	options sim.Options
	budget  time.Duration
	workers int
	one     bool
	out     io.Writer
	diary   io.Writer

	mu        sync.Mutex
	next      uint64
	seeds     int
	simulated time.Duration
	counts    tally.Counts
	failed    *sim.Report
	violated  int
	err       error
}

const progressEvery = 10 * time.Second

func (c *campaign) run() (violated bool, err error) {
	begun := time.Now()
	c.next = c.options.Seed
	if c.one {
		c.workers = 1
	}
	stop := make(chan struct{})
	var progress, work sync.WaitGroup
	progress.Go(func() { c.tell(begun, stop) })
	for range c.workers {
		work.Go(func() { c.work(begun) })
	}
	work.Wait()
	close(stop)
	progress.Wait()
	if c.err != nil {
		return false, c.err
	}
	if c.failed != nil {
		c.explain(c.failed)
	}
	fmt.Fprintf(c.out, "seeds=%d simulated=%.2fh real=%.0fs violations=%d %s\n", c.seeds, c.simulated.Hours(),
		time.Since(begun).Seconds(), c.violated, c.counts.String())
	return c.failed != nil, nil
}

// work runs one seed after another.
func (c *campaign) work(begun time.Time) {
	for {
		c.mu.Lock()
		over := c.failed != nil || c.err != nil || (c.seeds > 0 && c.one) || (!c.one && time.Since(begun) >= c.budget)
		options := c.options
		options.Seed = c.next
		c.next++
		c.mu.Unlock()
		if over {
			return
		}
		report, err := sim.Run(options)
		c.mu.Lock()
		if err != nil {
			c.err = err
		} else {
			c.seeds++
			c.simulated += report.Simulated
			c.counts.Add(&report.Counts)
			if len(report.Violations) > 0 {
				c.violated++
				if c.failed == nil {
					c.failed = &report
				}
			} else if c.one {
				fmt.Fprintf(c.diary, "%s\n%d events, trace %016x\n", report.Plan, report.TraceLines, report.TraceSum)
			}
		}
		c.mu.Unlock()
	}
}

// tell says every now and then how far the campaign is.
func (c *campaign) tell(begun time.Time, stop <-chan struct{}) {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			c.mu.Lock()
			fmt.Fprintf(c.diary, "%s: %d seeds, %.2f simulated hours, %d operations\n",
				time.Since(begun).Round(time.Second), c.seeds, c.simulated.Hours(), c.counts.Ops)
			c.mu.Unlock()
		}
	}
}

// explain prints what was broken and how to see it again.
func (c *campaign) explain(r *sim.Report) {
	fmt.Fprintf(c.out, "seed %d: %s\n", r.Seed, r.Plan)
	for _, v := range r.Violations {
		fmt.Fprintf(c.out, "VIOLATION %v\n", v)
	}
	again := []string{"go run ./cmd/quoratesim run", fmt.Sprintf("--seed %d", r.Seed)}
	if c.options.Nemesis != "" {
		again = append(again, "--nemesis "+c.options.Nemesis)
	}
	if c.options.Protocol != "" {
		again = append(again, "--protocol "+c.options.Protocol)
	}
	if c.options.Load != "" {
		again = append(again, "--load "+c.options.Load)
	}
	if c.options.Engine == stores.Pebble {
		again = append(again, "--engine "+c.options.Engine)
	}
	if c.options.Members != 0 {
		again = append(again, fmt.Sprintf("--members %d", c.options.Members))
	}
	if c.options.Duration != 0 {
		again = append(again, fmt.Sprintf("--faults %v", c.options.Duration))
	}
	if c.options.Break != "" {
		again = append(again, "--break "+c.options.Break)
	}
	fmt.Fprintf(c.out, "replay: %s\n", strings.Join(again, " "))
}
