package main

import (
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
		p.load.EventTTL, machine())
	all, wrong := p.measureAll(ctx)
	if len(all) == 0 {
		return wrong
	}
	fmt.Println()
	return errors.Join(report(os.Stdout, p.servers, all), wrong)
}

// measureAll runs all rounds, and returns what there is also if something went wrong or the user has had enough.
func (p *controlPlane) measureAll(ctx context.Context) (all []figures, wrong error) {
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
				got[i].server, got[i].round = s.name, round
			}
			all = append(all, got...)
			if err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("%s, round %d: %w", s.name, round+1, err))
			}
		}
	}
	return all, wrong
}

// measure runs one server once, on a fresh cluster.
func (p *controlPlane) measure(ctx context.Context, s server, round int) (got []figures, err error) {
	c, _, err := newCluster(ctx, s, p.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
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
		fmt.Printf("%s round %d: every watch was told each event once, in order, with its previous value\n", s.name, round+1)
		return got, nil
	}
	return got, fmt.Errorf("%d violations:\n  %s", count, strings.Join(texts, "\n  "))
}

// open prepares a cluster for the load: nodes, pods and watches.
func (p *controlPlane) open(ctx context.Context, c *cluster) (*k8s.Session, error) {
	options := p.load
	for _, m := range c.members {
		options.Endpoints = append(options.Endpoints, m.clientAddr)
	}
	return k8s.Open(ctx, options)
}

// fixed loads a cluster at one rate, and does what is to be done to it in the middle.
func (p *controlPlane) fixed(ctx context.Context, c *cluster, session *k8s.Session, round int) ([]figures, error) {
	meters := c.meter(p.dir)
	var failed error
	var at time.Time
	load := k8s.Load{Rate: p.rate, Warm: p.warm, Length: p.length, Opened: meters.open, Closed: meters.close}
	if p.fault != nil {
		load.AtHalf = func(now time.Time) {
			at = now
			limited, cancel := context.WithTimeout(ctx, changeTimeout)
			defer cancel()
			failed = p.fault(limited, c)
		}
	}
	leaders := c.countElections(ctx)
	outcome := session.Run(ctx, load)
	rows := rowsOf(outcome, p.length)
	f := &rows[0]
	f.set(elections, float64(leaders()))
	f.set(cancelled, float64(session.Cancelled()))
	meters.charge(f, float64(outcome.Mutations.Count()))
	if p.fault != nil {
		// The processes are not the same before and after it.
		f.set(serverMicros, math.NaN())
		f.set(othersPercent, math.NaN())
		f.set(waitMillis, millis(longestGap(outcome.Ends, at, meters.to.at)))
		f.set(quietMillis, millis(longestGap(outcome.Ends, meters.from.at, at)))
	}
	printStep(c.server.name, round, p.rate, outcome, "")
	printErrors(outcome)
	if n := outcome.Mutations.Count(); n > 0 {
		parts := writtenParts{c.server.name, float64(n), meters.countsTo.since(meters.countsFrom)}
		failed = errors.Join(failed, printParts(os.Stdout, []writtenParts{parts}))
	}
	return rows, failed
}
