package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
)

// judgement is what holds for all attacks of a run.
type judgement struct {
	length, settles time.Duration
	mostWait        time.Duration // p99 of others' puts, where an attack allows no more; zero: whatever it is
}

// attacks make a member hold much, in a memory control group of half as much again as its limit, and measure how others fare.
func attacks(f *flags) func() ([]trial, error) {
	limits := f.memoryLimits("512MiB")
	length := f.duration("duration", "10s", "of one attack", 1)
	drawn := f.number("draw", "0", "draw so many attacks instead of those that are known", 0, math.MaxInt)
	seed := take(f, "seed", "1", "of the first one that is drawn",
		func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	only := f.text("only", "", "only attacks whose names have one of these in them, between commas")
	mostWait := f.duration("p99", mostP99.String(),
		"of others' puts, at most, where the attack allows no more; 0: whatever it is", 0)
	settles := f.duration("settle", "12s", "how long members get to give memory back: after MiB", 0)
	return func() (all []trial, err error) {
		known := chosenAttacks(*drawn, *seed, *only)
		if len(known) == 0 {
			return nil, fmt.Errorf("--only %s: no attack has that in its name", *only)
		}
		j := &judgement{length: *length, settles: *settles, mostWait: *mostWait}
		for _, limit := range *limits {
			var mib int64
			if _, err := fmt.Sscanf(limit, "%dMiB", &mib); err != nil {
				return nil, fmt.Errorf("--memory %s: want a number of MiB: %w", limit, err)
			}
			for i := range known {
				h := &known[i]
				all = append(all, trial{name: limit + " " + h.name,
					on: cluster.Conditions{Flags: []string{"--memory=" + limit}, TLS: h.secure, GroupMiB: mib * 3 / 2},
					do: func(ctx context.Context, b *bed) ([]figures.Row, error) { return j.judge(ctx, b, h, mib) }})
			}
		}
		return all, nil
	}
}

// chosenAttacks are those that are known, or drawn, and have one of some texts in their names.
func chosenAttacks(drawn int, seed uint64, only string) []holding {
	all := allHoldings()
	if drawn > 0 {
		all = nil
		for i := range uint64(drawn) {
			all = append(all, draw(seed+i))
		}
	}
	return slices.DeleteFunc(all, func(h holding) bool {
		return !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(h.name, part) })
	})
}

// judge makes one attack on fresh members, and fails if it does.
func (j *judgement) judge(ctx context.Context, b *bed, h *holding, limitMiB int64) ([]figures.Row, error) {
	r, err := j.hold(ctx, b, h, limitMiB)
	if err != nil {
		return nil, err
	}
	faults := r.faults(h, j.mostWait)
	if r.attack.Refused > 0 {
		fmt.Fprintf(os.Stderr, "%s: the last of %d refusals: %s\n", h.name, r.attack.Refused, r.attack.Said)
	}
	if len(faults) > 0 {
		err = errors.New(strings.Join(faults, ", "))
	}
	return []figures.Row{r.row(fmt.Sprintf("%dMiB %s", limitMiB, h.name), h, faults)}, err
}

// hold makes one attack on fresh members.
func (j *judgement) hold(ctx context.Context, b *bed, h *holding, limitMiB int64) (r *held, err error) {
	c := b.Cluster
	r = &held{limit: float64(limitMiB), group: float64(c.Group)}
	others, err := newBystander(ctx, c.Members[0].ClientAddr, h.users)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, others.close()) }()
	if err := h.fill.fillStore(others.named(ctx), others.kv, others.leases); err != nil {
		return nil, err
	}
	c.ForgetPeaks()
	before := c.Read()
	a, err := startAttacker(h, c.Members[0], others.token)
	if err != nil {
		return nil, err
	}
	r.fare = others.watch(ctx, j.length)
	r.peak = c.Resident("VmHWM")
	later := c.Read()
	if r.attack, err = a.end(); err != nil {
		return nil, err
	}
	later.Generator += r.attack.Spent
	r.others = cluster.Others(before, later)
	cluster.Pause(ctx, j.settles)
	r.after = c.Resident("VmRSS")
	for _, m := range c.Members {
		select {
		case <-m.Ended:
			r.ended = fmt.Sprintf("%s ended", m.Name)
			fmt.Fprintf(os.Stderr, "%s ended:\n%s", m.Name, m.LastWords())
			return r, nil
		default:
		}
	}
	if h.kills() {
		if r.start, err = others.killed(ctx, c); err != nil {
			r.ended = err.Error()
		}
	}
	return r, ctx.Err()
}
