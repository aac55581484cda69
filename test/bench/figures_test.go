package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	unknown := math.NaN()
	for _, row := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"nothing", nil, unknown},
		{"nothing known", []float64{unknown}, unknown},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 2, 9}, 3},
		{"unknown ones are left out", []float64{unknown, 7, 1, unknown, 8}, 7},
	} {
		if got := median(row.values); got != row.want && !(math.IsNaN(got) && math.IsNaN(row.want)) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func sample(workload, server string, round int, rate float64) figures {
	f := newFigures(workload)
	f.server, f.round = server, round
	f.set(perSecond, rate)
	return f
}

// A ratio pairs the two servers of one round, in whatever order they ran.
func TestRatios(t *testing.T) {
	all := []figures{
		sample("put", "etcd", 0, 100), sample("put", "quorate", 0, 150),
		sample("put", "quorate", 1, 100), sample("put", "etcd", 1, 50),
		sample("put", "etcd", 2, 0), sample("put", "quorate", 2, 10), // nothing to divide by
		sample("put", "etcd", 3, 10), // no partner
		sample("put", "etcd", 4, 200), sample("put", "quorate", 4, 100),
		sample("range", "etcd", 0, 1), sample("range", "quorate", 0, 99),
	}
	got := ratios(all, "put", "etcd", "quorate", perSecond)
	if want := []float64{1.5, 2, 0.5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ratios(all, "put", "etcd", "quorate", residentMiB); len(got) != 0 {
		t.Errorf("of what was not measured: got %v, want none", got)
	}
	var text strings.Builder
	if err := report(&text, []server{{name: "etcd"}, {name: "quorate"}}, all); err != nil {
		t.Fatal(err)
	}
	if want := "1.50 (1.50 2.00 0.50)"; !strings.Contains(text.String(), want) {
		t.Errorf("report lacks %q:\n%s", want, text.String())
	}
}

func TestFigures_charge(t *testing.T) {
	w := &worker{errors: 2}
	for range 1000 {
		w.times.Record(time.Millisecond)
	}
	at := time.Now()
	f := newFigures("put")
	f.charge(reading{at: at, servers: time.Second}, reading{at: at.Add(2 * time.Second), servers: 3 * time.Second,
		generator: time.Second / 2, everyone: 3 * time.Second}, []*worker{w, {}})
	for k, want := range map[kind]float64{perSecond: 500, serverMicros: 2000, clientMicros: 500, failures: 2} {
		if got := f.values[k]; got != want {
			t.Errorf("%s: got %v, want %v", headings[k], got, want)
		}
	}
}

func TestLongestGap(t *testing.T) {
	base := time.Now()
	at := func(ms ...int) (times []time.Time) {
		for _, m := range ms {
			times = append(times, base.Add(time.Duration(m)*time.Millisecond))
		}
		return times
	}
	for _, row := range []struct {
		name string
		ends []time.Time
		want int
	}{
		{"nothing came", nil, 1000},
		{"gaps before the fault do not count", at(-900, -1, 10, 500, 990), 490},
		{"ends in any order", at(990, 500, 10), 490},
		{"the first gap begins with the last success before the fault", at(-5, 700, 990), 705},
		{"the last gap reaches the end", at(100, 200), 800},
		{"what ended later is not there", at(100, 200, 5000), 800},
	} {
		got := longestGap(row.ends, base, base.Add(time.Second))
		if want := time.Duration(row.want) * time.Millisecond; got != want {
			t.Errorf("%s: got %v, want %v", row.name, got, want)
		}
	}
}
