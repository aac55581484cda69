package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"
	"github.com/quorate/quorate/test/bench/load"
)

// bed is what a trial is done to: fresh members of one server, under its conditions.
type bed struct {
	*cluster.Cluster
	dir   string // that their data lies in
	round int
}

// trial is one thing that is done to members of each server in turn.
type trial struct {
	name     string // that is said while it goes on
	on       cluster.Conditions
	filled   bool // the store has keys before it begins
	shares   bool // it may follow others on one cluster, and others may follow it
	do       func(ctx context.Context, b *bed) ([]figures.Row, error)
	measures []figures.Kind // the columns that its rows may have
}

// experiment is what a command line asks for.
type experiment struct {
	command   string // that measures the same
	servers   []cluster.Server
	dir, json string
	rounds    int
	trials    []trial
	tail      string                          // that follows the report
	idle      bool                            // nothing is measured
	run       func(ctx context.Context) error // measures and prints
	// part is what another command line asks for, of the same servers.
	part func(line string) (*experiment, error)
}

// report measures, and prints what came of it, also if something went wrong.
func (e *experiment) report(ctx context.Context) error {
	fmt.Printf("%s; %s\n\n", e.command, cluster.Machine())
	all, wrong := e.measure(ctx)
	if len(all) == 0 {
		return wrong
	}
	failed := figures.Report(os.Stdout, cluster.Names(e.servers), all)
	fmt.Print(e.tail)
	return errors.Join(wrong, failed, e.record(ctx, all))
}

// measure does each trial to each server, as often as there are rounds, which alternate the server that goes first. A trial
// that fails does not keep the others from being measured.
func (e *experiment) measure(ctx context.Context) (all []figures.Row, wrong error) {
	for round := range e.rounds {
		order := slices.Clone(e.servers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for i := range e.trials {
			for _, s := range order {
				t := &e.trials[i]
				say(fmt.Sprintf("%s, round %d of %d", t.name, round+1, e.rounds), s.Name)
				rows, err := t.measure(ctx, s, e.dir, round)
				for i := range rows {
					rows[i].Server, rows[i].Round = s.Name, round
					fmt.Fprintln(os.Stderr, "  "+rows[i].String())
				}
				all = append(all, rows...)
				if err != nil {
					wrong = errors.Join(wrong, fmt.Errorf("%s, %s, round %d: %w", t.name, s.Name, round+1, err))
				}
				if ctx.Err() != nil {
					return all, errors.Join(wrong, ctx.Err())
				}
			}
		}
	}
	return all, wrong
}

// measure does the trial to fresh members of one server.
func (t *trial) measure(ctx context.Context, s cluster.Server, dir string, round int) (rows []figures.Row, err error) {
	c, err := cluster.Start(ctx, s, dir, t.on)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Remove()) }()
	if t.filled {
		if err := load.Fill(ctx, c, load.KeyCount, load.KeyAt); err != nil {
			return nil, err
		}
	}
	rows, err = t.do(ctx, &bed{c, dir, round})
	return rows, errors.Join(err, t.check(rows))
}

// check wants rows to have no columns but those that the table of workloads says.
func (t *trial) check(rows []figures.Row) (err error) {
	for i := range rows {
		for _, k := range rows[i].Known() {
			if !slices.Contains(t.measures, k) {
				err = errors.Join(err, fmt.Errorf("%s has %q, which the table of workloads does not say", rows[i].Workload, k))
			}
		}
	}
	return err
}

// record writes what was measured for machines, if that is asked for.
func (e *experiment) record(ctx context.Context, all []figures.Row) error {
	if e.json == "" {
		return nil
	}
	r := figures.Record{Date: time.Now().UTC().Format(time.RFC3339), Machine: cluster.Machine(), Command: e.command, Rows: all}
	for _, s := range e.servers {
		version, err := cluster.Version(ctx, s)
		if err != nil {
			return err
		}
		r.Servers = append(r.Servers, figures.Server{Name: s.Name, Version: version})
	}
	file, err := os.Create(e.json)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}

// together makes one trial, on one cluster, of all those that may share it. It stands where the first of them stood.
func together(all []trial) (out []trial) {
	at := -1
	for _, t := range all {
		switch {
		case !t.shares:
			out = append(out, t)
		case at < 0:
			at, out = len(out), append(out, t)
		default:
			out[at] = out[at].before(t)
		}
	}
	return out
}

// before does one trial after another.
func (t trial) before(next trial) trial {
	first := t.do
	t.name = strings.Join([]string{t.name, next.name}, ", ")
	t.measures = append(slices.Clone(t.measures), next.measures...)
	t.do = func(ctx context.Context, b *bed) ([]figures.Row, error) {
		rows, err := first(ctx, b)
		if err != nil {
			return rows, err
		}
		more, err := next.do(ctx, b)
		return append(rows, more...), err
	}
	return t
}
