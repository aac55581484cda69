package traffic

import (
	"html/template"
	"math"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/page"
)

const (
	// step is what one value of a line stands for, and mostSteps how many a line has.
	step      = 10 * time.Second
	mostSteps = 60
	// mostPoints is how many points of a member are looked at.
	mostPoints = 4 * mostSteps
)

// quantity is what a chart is of.
type quantity struct {
	title string
	unit  func(float64) string
	least float64
	most  float64
	// of is the value of a point; NaN: there is none.
	of func(p *quoratepb.ObservedPoint) float64
	// idle says that the chart is left out if it would be of nothing.
	idle bool
}

var (
	writes = quantity{title: "Writes a second by member", unit: page.PerSecond, least: 1,
		of: func(p *quoratepb.ObservedPoint) float64 { return rateOf(p, p.GetWrites()) }}
	reads = quantity{title: "Reads a second by member", unit: page.PerSecond, least: 1,
		of: func(p *quoratepb.ObservedPoint) float64 { return rateOf(p, p.GetReads()) }}
	puts = quantity{title: "The slowest put of a hundred, by member", unit: axisMicros, least: 1000,
		of: func(p *quoratepb.ObservedPoint) float64 { return known(p.GetPutP99Us()) }}
	syncs = quantity{title: "The slowest sync of a hundred, by member", unit: axisMicros, least: 1000,
		of: func(p *quoratepb.ObservedPoint) float64 { return known(p.GetSyncP99Us()) }}
	shares = quantity{title: "Share of writes by the fast path, by member", unit: page.Percent, least: 1, most: 1, idle: true,
		of: func(p *quoratepb.ObservedPoint) float64 {
			if p.GetWrites() == 0 {
				return math.NaN()
			}
			return min(1, float64(p.GetOneTrip())/float64(p.GetWrites()))
		}}
)

func rateOf(p *quoratepb.ObservedPoint, n uint64) float64 {
	return float64(n) / max(float64(p.GetLastedMs()), 1) * 1000
}

func known(us int64) float64 {
	if us <= 0 {
		return math.NaN()
	}
	return float64(us)
}

func axisMicros(us float64) string {
	if us <= 0 {
		return "0"
	}
	return micros(int64(us + 0.5))
}

// chartView is a chart, or why there is none.
type chartView struct {
	Chart  template.HTML
	Untold []string // members whose builds tell no series
}

// chartOf draws a quantity of all members over the last minutes.
func chartOf(q quantity) func([]member) (any, error) {
	return func(all []member) (any, error) {
		v := chartView{}
		var series []chart.Series
		first, some := mostSteps, false
		for i := range all {
			m := &all[i]
			switch {
			case m.fault != "":
				continue
			case m.traffic == nil:
				v.Untold = append(v.Untold, m.name)
				continue
			}
			values := resample(m.is.GetSeries(), q.of)
			for at, value := range values {
				if !math.IsNaN(value) {
					first = min(first, at)
					some = some || value > 0
				}
			}
			if q.idle && m.leads() && m.traffic.GetOffered() == 0 {
				continue // a leader offers none
			}
			series = append(series, chart.Series{Name: m.name, Values: values})
		}
		if q.idle && !some {
			return nil, page.ErrHidden
		}
		if first > mostSteps-2 {
			return v, nil
		}
		for i := range series {
			series[i].Values = series[i].Values[first:]
		}
		whole := time.Duration(mostSteps-first) * step
		v.Chart = chart.Lines(chart.Options{Title: q.title, Unit: q.unit, Least: q.least, Most: q.most, Past: ago(whole),
			Half: ago(whole / 2)}, series...)
		return v, nil
	}
}

// resample is the value of each step of the last minutes: members count at moments of their own, and lines share the steps.
func resample(points []*quoratepb.ObservedPoint, of func(*quoratepb.ObservedPoint) float64) []float64 {
	sums, weights := make([]float64, mostSteps), make([]float64, mostSteps)
	stepMS := step.Milliseconds()
	for _, p := range points[:min(len(points), mostPoints)] {
		ended, lasted, value := p.GetEndedMs(), p.GetLastedMs(), of(p)
		if ended < 0 || lasted <= 0 || ended > mostSteps*stepMS || lasted > mostSteps*stepMS || math.IsNaN(value) {
			continue
		}
		for at := ended / stepMS; at*stepMS < ended+lasted && at < mostSteps; at++ { // so many steps ago
			overlap := float64(min(ended+lasted, (at+1)*stepMS) - max(ended, at*stepMS))
			sums[mostSteps-1-at] += value * overlap
			weights[mostSteps-1-at] += overlap
		}
	}
	for i := range sums {
		if weights[i] == 0 {
			sums[i] = math.NaN()
			continue
		}
		sums[i] /= weights[i]
	}
	return sums
}
