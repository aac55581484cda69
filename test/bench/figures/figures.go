package figures

import (
	"math"
	"slices"
	"time"
)

// Row are what one workload at one number of clients gave for one server in one round. A value that a workload does not
// measure is not a number.
type Row struct {
	Workload, Server string
	Round            int
	Values           [kinds]float64
	Note             string // what no number says
	Detail           any    // what a picture is drawn of; nil: nothing
}

func NewRow(workload string) Row {
	f := Row{Workload: workload}
	for i := range f.Values {
		f.Values[i] = math.NaN()
	}
	return f
}

func (f *Row) Set(k Kind, v float64) { f.Values[k] = v }

// Latencies sets how many operations a window had, and how long they took.
func (f *Row) Latencies(n uint64, quantile func(float64) time.Duration, longest, window time.Duration) {
	f.Set(Done, float64(n))
	f.Set(PerSecond, float64(n)/window.Seconds())
	if n == 0 {
		return
	}
	for k, share := range map[Kind]float64{MedianMillis: 0.50, P90Millis: 0.90, P99Millis: 0.99} {
		f.Set(k, Millis(min(quantile(share), longest))) // a histogram may be a little too high
	}
	f.Set(MaxMillis, Millis(longest))
}

// Known are the columns that have a figure.
func (f *Row) Known() (all []Kind) {
	for k, v := range f.Values {
		if !math.IsNaN(v) {
			all = append(all, Kind(k))
		}
	}
	return all
}

// String is the row in one line, with the columns that have a figure.
func (f *Row) String() string {
	text := f.Workload
	for i, k := range f.Known() {
		text += [2]string{": ", ", "}[min(i, 1)] + k.String() + " " + k.Show(f.Values[k])
	}
	if f.Note != "" {
		text += "; " + f.Note
	}
	return text
}

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
