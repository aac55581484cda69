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
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
)

// measure loads fresh members, and checks in the end what the watches were told.
func (p *controlPlane) measure(ctx context.Context, b *bed) (got []figures.Row, err error) {
	session, err := p.open(ctx, b.Cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if p.findMax {
		got = p.search(ctx, b, session)
	} else {
		got, err = p.fixed(ctx, b, session)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return got, err
	}
	texts, count, err := session.Check(ctx)
	if err != nil {
		return got, err
	}
	if count == 0 {
		fmt.Printf("%s round %d: every watch was told each event once, in order, with its previous value\n", b.Server.Name,
			b.round+1)
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
func (p *controlPlane) fixed(ctx context.Context, b *bed, session *k8s.Session) ([]figures.Row, error) {
	c, meters := b.Cluster, b.Meter(b.dir)
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
	printStep(c.Server.Name, b.round, p.rate, outcome, "")
	printErrors(outcome)
	if n := outcome.Mutations.Count(); n > 0 {
		parts := meters.Parts(c.Server.Name, float64(n))
		failed = errors.Join(failed, cluster.PrintParts(os.Stdout, []cluster.WrittenParts{parts}))
	}
	return rows, failed
}
