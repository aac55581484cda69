package pictures

import (
	"fmt"
	"math"
	"slices"
)

// Defragmentation and Compaction are what a Mark may say.
const (
	Compaction      = "compaction"
	Defragmentation = "defragmentation"
)

const (
	timelineHeight = 190
	stripHeight    = 26
)

// latency has a panel for each server, one above the other, with the same axes.
func latency(r *Results) []byte {
	least, most, length := math.Inf(1), 0.0, 0
	rate := 0.0
	for _, s := range r.Servers {
		if s.Seconds == nil {
			continue
		}
		rate, length = s.Seconds.Rate, max(length, len(s.Seconds.P99))
		for i, v := range s.Seconds.P99 {
			if v > 0 {
				most, least = max(most, v), min(least, max(s.Seconds.Median[i], 0.05))
			}
		}
	}
	if length == 0 || most == 0 {
		return nil
	}
	c := newCanvas("Latency of puts while history is compacted", fmt.Sprintf(
		"%s puts due in each second, whatever became of those before; from when one was due until it was acknowledged",
		count(rate)))
	c.legend(margin, c.y+14, []entry{lineEntry("p50", "n l a"), lineEntry("p99", "l a"),
		boxEntry("compaction of history, until the member asked has done it", "k"),
		boxEntry("defragmentation of one member", "o")})
	y := c.y + 52
	marks := decades(least, most)
	for i, s := range r.Servers {
		if s.Seconds == nil {
			continue
		}
		c.seconds(s.Name, s.Seconds, i, y, marks, length)
		y += timelineHeight + stripHeight + 60
	}
	c.text(width/2, y-20, "d m", "seconds")
	c.y = y - 14
	return c.finish(r)
}

// seconds is the panel of one server. Below it stands what other processes took of the machine meanwhile.
func (c *canvas) seconds(name string, t *Timeline, server int, y float64, marks []float64, length int) {
	const left, h = 58, timelineHeight
	x, w := float64(margin+left), float64(width-2*margin-left)
	ys := scale{from: marks[0], to: marks[len(marks)-1], begin: y + h, end: y, logarithmic: true}
	xs := scale{from: 0, to: float64(length), begin: x, end: x + w}
	c.text(x, y-12, "p "+colour("f", server), name)
	c.text(x+w, y-12, "d e", fmt.Sprintf("p99 of the median second %s ms, of the slowest %s ms; %d failed",
		short(middle(t.P99)), short(slices.Max(t.P99)), t.Failed))
	for _, v := range marks {
		c.line(x, ys.at(v), x+w, ys.at(v), "g")
		c.text(x-6, ys.at(v)+4, "d e", short(v))
	}
	for _, m := range t.Marks {
		class := "k"
		if m.What == Defragmentation {
			class = "o"
		}
		c.box(xs.at(m.From), y, max(xs.at(m.To)-xs.at(m.From), 1), h, class)
		c.line(xs.at(m.From), y, xs.at(m.From), y+h, class+"l")
	}
	c.text(x-6, y-12, "d e", "ms")
	c.line(x, y+h, x+w, y+h, "a")
	below := y + h + stripHeight
	c.text(x-6, below-4, "f e", "others, %")
	for n, percent := range t.Others {
		high := min(percent, 100) / 100 * (stripHeight - 4)
		c.box(xs.at(float64(n)), below-high, xs.at(1)-xs.at(0)-1, high, "q")
	}
	c.line(x, below, x+w, below, "g")
	for v := 0; v <= length; v += 10 {
		c.line(xs.at(float64(v)), below, xs.at(float64(v)), below+4, "a")
		c.text(xs.at(float64(v)), below+18, "d m", fmt.Sprint(v))
	}
	var at []float64
	for n := range t.P99 {
		at = append(at, xs.at(float64(n)+0.5))
	}
	c.path(at, each(t.Median, ys.at), "l n "+colour("s", server))
	c.path(at, each(t.P99, ys.at), "l "+colour("s", server))
}

func each(values []float64, f func(float64) float64) (out []float64) {
	for _, v := range values {
		if v <= 0 {
			out = append(out, math.NaN()) // nothing was done in that second
			continue
		}
		out = append(out, f(v))
	}
	return out
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
