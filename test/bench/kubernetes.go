package main

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"

	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

// kubernetes measures servers under the load of a Kubernetes control plane, in rounds as `run` does.
func kubernetes(ctx context.Context, arguments []string) error {
	p, err := parseControlPlane(arguments)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%.0f mutations a second", p.rate)
	if p.findMax {
		what = fmt.Sprintf("the highest rate with a p99 below %s", p.limits.bound)
	}
	fmt.Printf("%s; %d nodes, %d pods of %d %s bytes, %d rounds; a list every %s, a compaction every %s, events for %s; %s\n\n",
		what, p.load.Nodes, p.load.Pods, p.load.PodBytes, p.values, p.rounds, p.load.ListEvery, p.load.CompactEvery,
		p.load.EventTTL, cluster.Machine())
	all, wrong := p.measureAll(ctx)
	if len(all) == 0 {
		return wrong
	}
	fmt.Println()
	return errors.Join(figures.Report(os.Stdout, cluster.Names(p.servers), all), wrong)
}

// measureAll runs all rounds, and returns what there is also if something went wrong or the user has had enough.
func (p *controlPlane) measureAll(ctx context.Context) (all []figures.Row, wrong error) {
	for round := range p.rounds {
		order := slices.Clone(p.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			got, err := p.measure(ctx, s, round)
			if ctx.Err() != nil {
				return all, ctx.Err()
			}
			for i := range got {
				got[i].Server, got[i].Round = s.Name, round
			}
			all = append(all, got...)
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s, round %d: %w", s.Name, round+1, err))
			}
		}
	}
	return all, wrong
}

// measure runs one server once, on a fresh cluster.
func (p *controlPlane) measure(ctx context.Context, s cluster.Server, round int) (got []figures.Row, err error) {
	c, _, err := cluster.Start(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	session, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if p.findMax {
		got = p.search(ctx, c, session, round)
	} else {
		got, err = p.fixed(ctx, c, session, round)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return got, err
	}
	texts, count, err := session.Check(ctx)
	if err != nil {
		return got, err
	}
	if count == 0 {
		fmt.Printf("%s round %d: every watch was told each event once, in order, with its previous value\n", s.Name, round+1)
		return got, nil
	}
	return got, fmt.Errorf("%d violations:\n  %s", count, strings.Join(texts, "\n  "))
}

// open prepares a cluster for the load: nodes, pods and watches.
func (p *controlPlane) open(ctx context.Context, c *cluster.Cluster) (*k8s.Session, error) {
	options := p.load
	for _, m := range c.Members {
		options.Endpoints = append(options.Endpoints, m.ClientAddr)
	}
	return k8s.Open(ctx, options)
}

// fixed loads a cluster at one rate, and does what is to be done to it in the middle.
func (p *controlPlane) fixed(ctx context.Context, c *cluster.Cluster, session *k8s.Session, round int) ([]figures.Row, error) {
	meters := c.Meter(p.dir)
	var failed error
	var at time.Time
	offered := k8s.Load{Rate: p.rate, Warm: p.warm, Length: p.length, Opened: meters.Open, Closed: meters.Close}
	if p.fault != nil {
		offered.AtHalf = func(now time.Time) {
			at = now
			limited, cancel := context.WithTimeout(ctx, changeTimeout)
			defer cancel()
			failed = p.fault(limited, c)
		}
	}
	leaders := c.CountElections(ctx)
	outcome := session.Run(ctx, offered)
	rows := rowsOf(outcome, p.length)
	f := &rows[0]
	f.Set(figures.Elections, float64(leaders()))
	f.Set(figures.Cancelled, float64(session.Cancelled()))
	meters.Charge(f, float64(outcome.Mutations.Count()))
	if p.fault != nil {
		// The processes are not the same before and after it.
		f.Set(figures.ServerMicros, math.NaN())
		f.Set(figures.OthersPercent, math.NaN())
		f.Set(figures.WaitMillis, figures.Millis(load.LongestGap(outcome.Ends, at, meters.To.At)))
		f.Set(figures.QuietMillis, figures.Millis(load.LongestGap(outcome.Ends, meters.From.At, at)))
	}
	printStep(c.Server.Name, round, p.rate, outcome, "")
	printErrors(outcome)
	if n := outcome.Mutations.Count(); n > 0 {
		parts := meters.Parts(c.Server.Name, float64(n))
		failed = errors.Join(failed, cluster.PrintParts(os.Stdout, []cluster.WrittenParts{parts}))
	}
	return rows, failed
}
