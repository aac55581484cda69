package main

import (
	"github.com/quorate/quorate/test/bench/figures"

	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/test/bench/k8s"
	"github.com/quorate/quorate/test/bench/latency"
)

const allMutations = "mutations"

// rowsOf turns an outcome into rows of the report, that of all mutations first.
func rowsOf(o *k8s.Outcome, length time.Duration) []figures.Row {
	row := func(name string, h *latency.Histogram) figures.Row {
		f := figures.NewRow(name)
		f.Latencies(h.Count(), h.Quantile, h.Longest(), length)
		return f
	}
	rows := []figures.Row{row(allMutations, &o.Mutations)}
	rows[0].Set(figures.Failures, float64(o.Errors))
	for class := range o.Times {
		rows = append(rows, row(k8s.Class(class).String(), &o.Times[class]))
	}
	return append(rows, row("watch lag", &o.Lag))
}

func printStep(name string, round int, rate float64, o *k8s.Outcome, verdict string) {
	ms := func(d time.Duration) string { return figures.Show(figures.Millis(d)) }
	list, stream := o.Class(k8s.List), o.Class(k8s.Stream)
	fmt.Printf("%s %s round %d: %.0f/s due, %.0f/s done; p50 %s, p99 %s, max %s ms; lag p99 %s; list p50 %s, stream %s ms; "+
		"%d errors%s\n", time.Now().Format(time.TimeOnly), name, round+1, rate, o.Rate, ms(o.Mutations.Quantile(0.5)),
		ms(o.Mutations.Quantile(0.99)), ms(o.Mutations.Longest()), ms(o.Lag.Quantile(0.99)), ms(list.Quantile(0.5)),
		ms(stream.Quantile(0.5)), o.Errors, verdict)
	if o.Behind > 0 {
		fmt.Printf("  %d watches had not been told everything ten seconds later\n", o.Behind)
	}
}

func printErrors(o *k8s.Outcome) {
	for _, text := range slices.Sorted(maps.Keys(o.Failed)) {
		fmt.Printf("  %d x %s\n", o.Failed[text], text)
	}
}
