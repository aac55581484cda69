package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// campaign tries a sample of mutants.
type campaign struct {
	lab     laboratory
	order   []mutation
	sample  int
	workers int
	out     io.Writer // a line for each mutant; nil: none
	journal *journal  // what was tried, in this campaign and those before it; nil: nothing is kept

	mu      sync.Mutex
	changed *sync.Cond
	next    int
	trying  int
	counted int
	results []result
	err     error
}

// run tries mutants in their order until the sample is full. Those that do not compile are not counted, and the next one takes
// their place: so the sample depends on the order alone, and not on the workers.
func (c *campaign) run(ctx context.Context) error {
	c.changed = sync.NewCond(&c.mu)
	var work sync.WaitGroup
	for range c.workers {
		work.Go(func() {
			for i, ok := c.draw(ctx); ok; i, ok = c.draw(ctx) {
				c.tryOne(ctx, i)
			}
		})
	}
	work.Wait()
	slices.SortFunc(c.results, func(a, b result) int { return cmp.Compare(a.Number, b.Number) })
	if c.err == nil && ctx.Err() != nil {
		return fmt.Errorf("%w after %d of %d mutants; those that were being tried are not counted",
			errInterrupted, c.counted, c.sample)
	}
	return c.err
}

// errInterrupted is the end of a campaign whose sample is not full.
var errInterrupted = errors.New("interrupted")

// draw waits until it is certain whether the sample needs one more mutant.
func (c *campaign) draw(ctx context.Context) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.err != nil || ctx.Err() != nil || c.counted >= c.sample || c.next == len(c.order):
			return 0, false
		case c.counted+c.trying < c.sample:
			c.next++
			c.trying++
			return c.next - 1, true
		}
		c.changed.Wait()
	}
}

func (c *campaign) tryOne(ctx context.Context, i int) {
	begun := time.Now()
	r := result{mutation: c.order[i], Number: i + 1, Quick: c.lab.quick}
	before, known := c.journal.tried(i+1, c.lab.quick)
	var err error
	if known {
		r.Outcome, r.By, r.Seconds, r.Quick = before.Outcome, before.By, before.Seconds, before.Quick
	} else {
		r.Outcome, r.By, err = c.lab.try(ctx, &c.order[i])
		r.Seconds = time.Since(begun).Round(time.Second / 10).Seconds()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Broadcast()
	c.trying--
	switch {
	case ctx.Err() != nil: // interrupted: nothing is known about this one
		return
	case err != nil:
		c.err = err
		return
	case r.Outcome != invalid:
		c.counted++
	}
	c.results = append(c.results, r)
	if known {
		return
	}
	if c.err = c.journal.keep(&r); c.err == nil && c.out != nil {
		c.tell(&r)
	}
}

func (c *campaign) tell(r *result) {
	switch r.Outcome {
	case survived:
		fmt.Fprintf(c.out, "%4d SURVIVED %s: %s: %s\n     %s\n", r.Number, r.place(), r.Kind, r.Change, r.Source)
	default:
		fmt.Fprintf(c.out, "%4d %s %s: %s: %s: by %s\n", r.Number, r.Outcome, r.place(), r.Kind, r.Change, r.By)
	}
}

// summary is the end of the report.
type summary struct {
	Seed      uint64   `json:"seed"`
	Mutations int      `json:"mutations"` // all that there are
	Killed    int      `json:"killed"`
	Survived  int      `json:"survived"`
	Invalid   int      `json:"didNotCompile"`
	Share     float64  `json:"share"` // killed of those that compile
	Mutants   []result `json:"mutants"`
}

func (c *campaign) summary(seed uint64) summary {
	s := summary{Seed: seed, Mutations: len(c.order), Mutants: c.results}
	for i := range c.results {
		switch c.results[i].Outcome {
		case killed:
			s.Killed++
		case survived:
			s.Survived++
		default:
			s.Invalid++
		}
	}
	if n := s.Killed + s.Survived; n > 0 {
		s.Share = float64(s.Killed) / float64(n)
	}
	return s
}

func (s *summary) print(out io.Writer) {
	fmt.Fprintf(out, "seed=%d mutations=%d tried=%d killed=%d survived=%d share=%.0f%% did-not-compile=%d\n",
		s.Seed, s.Mutations, s.Killed+s.Survived, s.Killed, s.Survived, 100*s.Share, s.Invalid)
}

func (s *summary) printJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(s)
}
