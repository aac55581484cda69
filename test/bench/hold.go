package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
)

// holdPlan is what the command line of `hold` asks for.
type holdPlan struct {
	limitPlan
	settles time.Duration
}

// hold measures what attacks make a member hold, in a memory control group of half as much again as its limit, and how others
// fare.
func hold(ctx context.Context, arguments []string) error {
	p := &holdPlan{}
	var limits, only string
	var mostWait time.Duration
	var drawn int
	var seed uint64
	flags := flag.NewFlagSet("hold", flag.ExitOnError)
	cluster.ServerFlag(flags, &p.servers)
	flags.StringVar(&p.dir, "dir", "", "where data lies while a cluster runs: on the disk to test, not in memory")
	flags.StringVar(&limits, "memory", "512MiB", "values of the flag --memory to try, in MiB")
	flags.DurationVar(&p.length, "duration", 10*time.Second, "of one attack")
	flags.IntVar(&drawn, "draw", 0, "draw so many attacks instead of those that are known")
	flags.StringVar(&only, "only", "", "only attacks whose names have one of these in them, between commas")
	flags.DurationVar(&mostWait, "p99", mostP99, "of others' puts, at most, where the attack allows no more; 0: whatever it is")
	flags.DurationVar(&p.settles, "settle", 12*time.Second, "how long members get to give memory back: after")
	flags.Uint64Var(&seed, "seed", 1, "of the first one that is drawn")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), holdRules)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if len(p.servers) != 1 || p.dir == "" || flags.NArg() > 0 {
		return errors.New("hold: want one --server and --dir, and nothing but flags")
	}
	attacks := allHoldings()
	if drawn > 0 {
		attacks = nil
		for i := range uint64(drawn) {
			attacks = append(attacks, draw(seed+i))
		}
	}
	attacks = slices.DeleteFunc(slices.Clone(attacks), func(h holding) bool {
		return !slices.ContainsFunc(strings.Split(only, ","), func(part string) bool { return strings.Contains(h.name, part) })
	})
	if len(attacks) == 0 {
		return fmt.Errorf("hold: --only %s: no attack has that in its name", only)
	}
	var above error
	for _, limit := range strings.Split(limits, ",") {
		above = errors.Join(above, p.holdAt(ctx, limit, mostWait, attacks))
	}
	return above
}

// holdAt makes each attack on a fresh cluster with a limit, prints what came of it, and returns which ones failed.
func (p *holdPlan) holdAt(ctx context.Context, limit string, mostWait time.Duration, attacks []holding) (above error) {
	fmt.Printf(heldHead, "--memory", "attack", "peak", "after", "p50", "p99", "max", "failed", "unrenewed",
		"start", "group", "others", "calls", "refused", "fails")
	for i := range attacks {
		h := &attacks[i]
		r, err := p.holdOne(ctx, limit, h)
		if err == nil {
			faults := r.faults(h, mostWait)
			fmt.Print(r.row(limit, h, faults))
			if r.attack.Refused > 0 {
				fmt.Fprintf(os.Stderr, "%s: the last of %d refusals: %s\n", h.name, r.attack.Refused, r.attack.Said)
			}
			if len(faults) > 0 {
				err = errors.New(strings.Join(faults, ", "))
			}
		}
		if err != nil {
			above = errors.Join(above, fmt.Errorf("%s: %w", h.name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(above, ctx.Err())
		}
	}
	return above
}

// holdOne makes one attack on a fresh cluster.
func (p *holdPlan) holdOne(ctx context.Context, limit string, h *holding) (r *held, err error) {
	var mib int64
	if _, err := fmt.Sscanf(limit, "%dMiB", &mib); err != nil {
		return nil, fmt.Errorf("--memory %s: want a number of MiB: %w", limit, err)
	}
	s := p.servers[0]
	s.Flags, s.TLS = append(slices.Clone(s.Flags), "--memory="+limit), h.secure
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	r = &held{limit: float64(mib), group: "none"}
	confined, release := c.Confine(mib << 20 * 3 / 2)
	if confined {
		r.group = fmt.Sprintf("%d MiB", mib*3/2)
	}
	defer func() { err = errors.Join(err, c.Remove(), release()) }()
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
	r.fare = others.watch(ctx, p.length)
	r.peak = c.Resident("VmHWM")
	later := c.Read()
	if r.attack, err = a.end(); err != nil {
		return nil, err
	}
	later.Generator += r.attack.Spent
	r.others = cluster.Others(before, later)
	cluster.Pause(ctx, p.settles)
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
