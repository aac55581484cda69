package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// A scenario happens to a cluster that is whole, while writes run. It returns once it is over; then the cluster must become
// whole again, and no acknowledged write may be lost.
type scenario struct {
	name    string
	subject subject
	class   string
	run     func(context.Context, *cluster) error
}

const someWrites = 100

func scenarios(away time.Duration) []scenario {
	write := func(ctx context.Context, c *cluster) error { return c.progress(ctx, someWrites) }
	silent := func(ctx context.Context, c *cluster) error { return apiAway(ctx, c, away) }
	all := []scenario{
		{"roll a version and back", statefulSet{}, claims.Local, roll},
		{"delete a pod by force whose process lives on", statefulSet{}, claims.Network, forceDelete},
		{"resize", statefulSet{}, claims.Local, resize},
		{"delete a claim by hand", statefulSet{}, claims.Local, deleteClaim},
		{"wipe a disk", statefulSet{}, claims.Local, wipeDisk},
		{"roll a version and back", chart{}, claims.Local, chartRoll},
		{"scale 3, 5, 3", chart{}, claims.Local, chartScale},
		{"lose a node for ever", operated{}, claims.Local, loseNode},
		{"roll a version and back", operated{}, claims.Local, operatedRoll},
		{"scale 3, 5, 3", operated{}, claims.Local, operatedScale},
		{"resize", operated{}, claims.Local, operatedResize},
		{"delete a claim by hand", operated{}, claims.Local, operatedClaim},
		{"kill the operator again and again", operated{}, claims.Local, killOperator},
	}
	for _, s := range []subject{statefulSet{}, chart{}, operated{}} {
		all = append(all, scenario{"create", s, claims.Local, write}, scenario{"kill the leader's node", s, claims.Local,
			killNode},
			scenario{"freeze the leader's node", s, claims.Local, freezeNode}, scenario{"cut the leader's node off", s,
				claims.Local, cutNode},
			scenario{"drain all nodes in turn", s, claims.Network, drainAll}, scenario{"API server away", s, claims.Local,
				silent},
			scenario{"all nodes lose power", s, claims.Local, loseAll})
	}
	order := map[subject]int{statefulSet{}: 0, chart{}: 1, operated{}: 2}
	slices.SortStableFunc(all, func(a, b scenario) int { return order[a.subject] - order[b.subject] })
	return all
}

// title is the scenario's name, with that of its subject.
func (s scenario) title() string {
	return map[subject]string{statefulSet{}: "StatefulSet", chart{}: "chart",
		operated{}: "operator"}[s.subject] + ": " + s.name
}

// perform runs the scenarios that match, and prints the table. It has an error if one failed.
func perform(ctx context.Context, g *ground, away time.Duration, matches *regexp.Regexp) error {
	var rows []row
	failed := 0
	for i, s := range scenarios(away) {
		if !matches.MatchString(s.title()) || ctx.Err() != nil {
			continue
		}
		if missing := s.subject.missing(g); missing != "" {
			fmt.Fprintf(os.Stderr, "%s: left out, for want of %s\n", s.title(), missing)
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", s.title())
		r := performOne(ctx, g, fmt.Sprintf("s%d", i), s)
		if r.failed != nil {
			failed++
			g.restore(ctx)
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.title(), r.failed)
		}
		rows = append(rows, r)
	}
	printTable(os.Stdout, rows)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed > 0:
		return fmt.Errorf("%d of %d scenarios failed", failed, len(rows))
	case len(rows) == 0:
		return fmt.Errorf("no scenario matches %s", matches)
	}
	return nil
}

func performOne(ctx context.Context, g *ground, namespace string, s scenario) row {
	c := &cluster{ground: g, subject: s.subject, namespace: namespace, class: s.class}
	r := row{name: s.title()}
	began := time.Now()
	if r.failed = c.create(ctx, s.class); r.failed != nil {
		return r
	}
	if s.name != "create" {
		began = time.Now()
	}
	r.failed = s.run(ctx, c)
	if r.failed == nil {
		r.failed = c.ready(ctx)
	}
	if r.failed == nil {
		r.failed = c.progress(ctx, someWrites)
	}
	r.took = time.Since(began)
	tally, err := c.writer.stop(ctx)
	r.tally = tally
	switch {
	case r.failed != nil:
	case err != nil:
		r.failed = err
	case tally.lost > 0:
		r.failed = fmt.Errorf("%d acknowledged writes are lost", tally.lost)
	default:
		r.failed = c.remove(ctx)
	}
	return r
}
