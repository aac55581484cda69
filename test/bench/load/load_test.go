package load

import (
	"github.com/quorate/quorate/test/bench/cluster"
	"github.com/quorate/quorate/test/bench/figures"

	"testing"
	"time"
)

func TestFigures_charge(t *testing.T) {
	w := &Worker{Errors: 2}
	for range 1000 {
		w.Times.Record(time.Millisecond)
	}
	at := time.Now()
	f := figures.NewRow("put")
	Charge(&f, cluster.Reading{At: at, Servers: time.Second}, cluster.Reading{At: at.Add(2 * time.Second), Servers: 3 * time.Second,
		Generator: time.Second / 2, Everyone: 3 * time.Second}, []*Worker{w, {}})
	for k, want := range map[figures.Kind]float64{figures.PerSecond: 500, figures.ServerMicros: 2000, figures.ClientMicros: 500, figures.Failures: 2} {
		if got := f.Values[k]; got != want {
			t.Errorf("%s: got %v, want %v", k, got, want)
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
		got := LongestGap(row.ends, base, base.Add(time.Second))
		if want := time.Duration(row.want) * time.Millisecond; got != want {
			t.Errorf("%s: got %v, want %v", row.name, got, want)
		}
	}
}
