package figures

import (
	"math"
	"slices"
	"time"
)

// Kind is a column of the report.
type Kind int

const (
	PerSecond Kind = iota
	MedianMillis
	P99Millis
	WaitMillis  // start: until ready; faults: without a successful write; learner-snapshot: until it has caught up
	QuietMillis // faults: the same before the fault
	ServerMicros
	ClientMicros
	ResidentMiB
	Failures
	OthersPercent
	MaxMillis
	DeviceMiB // what the whole device was written to, for all members
	DiskMiB   // what lies there, of all members
	Cancelled // watches
	Elections // changes of the leader
	DeviceBytes
	LowestSecond // puts of the slowest second, as a part of the median second's
	kinds
)

var Headings = [kinds]string{
	"op/s", "p50 ms", "p99 ms", "wait ms", "quiet ms", "server us/op", "client us/op", "RSS MiB", "errors", "others %",
	"max ms", "device MiB", "disk MiB", "cancelled", "elections", "device B/op", "lowest s",
}

// compared are the columns of which a ratio means something.
var compared = []Kind{
	PerSecond, MedianMillis, P99Millis, WaitMillis, ServerMicros, ResidentMiB, DeviceMiB, DiskMiB, DeviceBytes, LowestSecond,
}

// Row are what one workload at one number of clients gave for one server in one round. What a workload does not
// measure is not a number.
type Row struct {
	Workload, Server string
	Round            int
	Values           [kinds]float64
}

func NewRow(workload string) Row {
	f := Row{Workload: workload}
	for i := range f.Values {
		f.Values[i] = math.NaN()
	}
	return f
}

func (f *Row) Set(k Kind, v float64) { f.Values[k] = v }

func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Median leaves out what is not a number, and is none if nothing is left.
func Median(values []float64) float64 {
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

// Ratios divides a server's figure by the base's of the same round, in the order of rounds. A round that lacks one of
// the two, or where the base is zero, is left out.
func Ratios(all []Row, workload, base, other string, k Kind) []float64 {
	find := func(server string, round int) float64 {
		for i := range all {
			if f := &all[i]; f.Workload == workload && f.Server == server && f.Round == round {
				return f.Values[k]
			}
		}
		return math.NaN()
	}
	last := 0
	for i := range all {
		last = max(last, all[i].Round)
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
