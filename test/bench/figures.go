package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/quorate/quorate/test/bench/latency"
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
	maxMillis
	deviceMiB // what the whole device was written to, for all members
	diskMiB   // what lies there, of all members
	cancelled // watches
	elections // changes of the leader
	deviceBytes
	lowestSecond // puts of the slowest second, as a part of the median second's
	kinds
)

var headings = [kinds]string{
	"op/s", "p50 ms", "p99 ms", "wait ms", "quiet ms", "server us/op", "client us/op", "RSS MiB", "errors", "others %",
	"max ms", "device MiB", "disk MiB", "cancelled", "elections", "device B/op", "lowest s",
}

// compared are the columns of which a ratio means something.
var compared = []kind{
	perSecond, medianMillis, p99Millis, waitMillis, serverMicros, residentMiB, deviceMiB, diskMiB, deviceBytes, lowestSecond,
}

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

// latencies sets what the workers did between two readings of the meters.
func (f *figures) latencies(from, to reading, workers []*worker) (done float64) {
	var times latency.Histogram
	wrong := 0
	for _, w := range workers {
		times.Add(&w.times)
		if wrong += w.errors; w.failed != nil {
			fmt.Fprintf(os.Stderr, "%s: a client's first error: %v\n", f.workload, w.failed)
		}
	}
	done = float64(times.Count())
	f.set(failures, float64(wrong))
	f.set(perSecond, done/to.at.Sub(from.at).Seconds())
	if done > 0 {
		f.set(medianMillis, millis(times.Quantile(0.50)))
		f.set(p99Millis, millis(times.Quantile(0.99)))
	}
	return done
}

// charge works out what happened between two readings of the meters, and what one operation cost.
func (f *figures) charge(from, to reading, workers []*worker) {
	done := f.latencies(from, to, workers)
	servers, generator := to.servers-from.servers, to.generator-from.generator
	others := max(0, to.everyone-from.everyone-servers-generator)
	f.set(othersPercent, 100*float64(others)/float64(to.at.Sub(from.at))/float64(runtime.NumCPU()))
	if done > 0 {
		f.set(serverMicros, micros(servers)/done)
		f.set(clientMicros, micros(generator)/done)
	}
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
