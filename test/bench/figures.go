package main

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// kind is a column of the report.
type kind int

const (
	perSecond kind = iota
	medianMillis
	p99Millis
	waitMillis  // start: until ready; faults: without a successful write; learner-snapshot: until it has caught up
	quietMillis // faults: the same before the fault
	serverMicros
	clientMicros
	residentMiB
	failures
	othersPercent
	kinds
)

var headings = [kinds]string{
	"op/s", "p50 ms", "p99 ms", "wait ms", "quiet ms", "server us/op", "client us/op", "RSS MiB", "errors", "others %",
}

// compared are the columns of which a ratio means something.
var compared = []kind{perSecond, medianMillis, p99Millis, waitMillis, serverMicros, residentMiB}

// figures are what one workload at one number of clients gave for one server in one round. What a workload does not
// measure is not a number.
type figures struct {
	workload, server string
	round            int
	values           [kinds]float64
}

func newFigures(workload string) figures {
	f := figures{workload: workload}
	for i := range f.values {
		f.values[i] = math.NaN()
	}
	return f
}

func (f *figures) set(k kind, v float64) { f.values[k] = v }

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// charge works out what happened between two readings of the meters.
func (f *figures) charge(from, to reading, workers []*worker) {
	var times histogram
	wrong := 0
	for _, w := range workers {
		times.add(&w.times)
		wrong += w.errors
	}
	elapsed, done := to.at.Sub(from.at), float64(times.count)
	servers, generator := to.servers-from.servers, to.generator-from.generator
	f.set(failures, float64(wrong))
	others := max(0, to.everyone-from.everyone-servers-generator)
	f.set(othersPercent, 100*float64(others)/float64(elapsed)/float64(runtime.NumCPU()))
	f.set(perSecond, done/elapsed.Seconds())
	if times.count == 0 {
		return
	}
	f.set(medianMillis, millis(times.quantile(0.50)))
	f.set(p99Millis, millis(times.quantile(0.99)))
	f.set(serverMicros, micros(servers)/done)
	f.set(clientMicros, micros(generator)/done)
}

// median leaves out what is not a number, and is none if nothing is left.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	if n := len(known); n%2 == 0 {
		return (known[n/2-1] + known[n/2]) / 2
	}
	return known[len(known)/2]
}

// ratios divides a server's figure by the base's of the same round, in the order of rounds. A round that lacks one of
// the two, or where the base is zero, is left out.
func ratios(all []figures, workload, base, other string, k kind) []float64 {
	find := func(server string, round int) float64 {
		for i := range all {
			if f := &all[i]; f.workload == workload && f.server == server && f.round == round {
				return f.values[k]
			}
		}
		return math.NaN()
	}
	last := 0
	for i := range all {
		last = max(last, all[i].round)
	}
	var out []float64
	for round := range last + 1 {
		below := find(base, round)
		if r := find(other, round) / below; below != 0 && !math.IsNaN(r) {
			out = append(out, r)
		}
	}
	return out
}
