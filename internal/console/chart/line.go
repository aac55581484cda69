package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Series is one line. Values are equally far apart, the last one of now; NaN: not known.
type Series struct {
	Name   string
	Values []float64
}

// mostSeries is how many lines have a colour and a pattern of their own.
const mostSeries = 5

// Options say what a figure is of.
type Options struct {
	Title string // for readers who do not see it
	// Unit makes a label of a value.
	Unit func(float64) string
	// Past is how long ago the first value was, such as "10 min ago".
	Past string
	// Least is the least top of the scale: a chart of small numbers does not look like one of large ones.
	Least float64
}

// The size of a figure in its own units; the stylesheet scales it.
const (
	width, height             = 560.0, 150.0
	left, right, above, below = 52.0, 6.0, 8.0, 20.0
)

// Lines draws series over time, with the legend if there are several, and a table behind it.
func Lines(o Options, series ...Series) template.HTML {
	series = series[:min(len(series), mostSeries)]
	top := o.Least
	for _, s := range series {
		for _, v := range s.Values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				top = max(top, v)
			}
		}
	}
	top = roundUp(top)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, escape(o.Title))
	for _, share := range []float64{0, 0.5, 1} {
		y := yOf(share*top, top)
		fmt.Fprintf(&out, `<line class="grid" x1="%g" y1="%s" x2="%g" y2="%s"/><text x="%g" y="%s" text-anchor="end">%s</text>`,
			left, number(y), width-right, number(y), left-6, number(y+4), escape(o.Unit(share*top)))
	}
	for i, s := range series {
		for _, run := range runs(s.Values) {
			points := pointsOf(s.Values, run, top)
			if len(series) == 1 {
				fmt.Fprintf(&out, `<polygon class="area f%d" points="%s"/>`, i+1, closed(points, s.Values, run))
			}
			fmt.Fprintf(&out, `<polyline class="line s%d" points="%s"/>`, i+1, strings.Join(points, " "))
		}
	}
	fmt.Fprintf(&out, `<text x="%g" y="%g">%s</text><text x="%g" y="%g" text-anchor="end">now</text></svg>`,
		left, height-4, escape(o.Past), width-right, height-4)
	legend(&out, series)
	table(&out, &o, series)
	return template.HTML(out.String()) // #nosec: every text is escaped
}

// roundUp is the next number that is easy to read: 1, 2 or 5 times a power of ten.
func roundUp(n float64) float64 {
	if n <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(n)))
	for _, step := range []float64{1, 2, 5, 10} {
		if n <= step*power*(1+1e-9) {
			return step * power
		}
	}
	return 10 * power
}

func xOf(i, n int) float64 {
	if n < 2 {
		return width - right
	}
	return left + (width-left-right)*float64(i)/float64(n-1)
}

func yOf(v, top float64) float64 { return above + (height-above-below)*(1-v/top) }

// run is a range of values that are known.
type run struct{ from, to int }

func runs(values []float64) (all []run) {
	known := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	for i := 0; i < len(values); i++ {
		if !known(values[i]) {
			continue
		}
		from := i
		for i < len(values) && known(values[i]) {
			i++
		}
		all = append(all, run{from, i})
	}
	return all
}

func pointsOf(values []float64, r run, top float64) (points []string) {
	for i := r.from; i < r.to; i++ {
		points = append(points, number(xOf(i, len(values)))+","+number(yOf(values[i], top)))
	}
	if len(points) == 1 { // a line of one point is not seen
		points = append(points, number(xOf(r.from, len(values))+1.5)+","+number(yOf(values[r.from], top)))
	}
	return points
}

func closed(points []string, values []float64, r run) string {
	base := number(yOf(0, 1))
	return fmt.Sprintf("%s,%s %s %s,%s", number(xOf(r.from, len(values))), base, strings.Join(points, " "),
		number(xOf(r.to-1, len(values))), base)
}

func legend(out *strings.Builder, series []Series) {
	if len(series) < 2 {
		return
	}
	out.WriteString(`<ul class="legend">`)
	for i, s := range series {
		fmt.Fprintf(out, `<li><svg viewBox="0 0 26 8" aria-hidden="true"><line class="line s%d" x1="0" y1="4" x2="26" y2="4" `+
			`stroke-width="2"/></svg>%s</li>`, i+1, escape(s.Name))
	}
	out.WriteString(`</ul>`)
}

// table has the least, the mean, the largest and the last value of each line.
func table(out *strings.Builder, o *Options, series []Series) {
	fmt.Fprintf(out, `<details><summary>Numbers</summary><div class="scroll"><table><thead><tr><th scope="col">%s</th>`,
		escape(o.Title))
	for _, column := range []string{"least", "mean", "most", "now"} {
		fmt.Fprintf(out, `<th scope="col" class="number">%s</th>`, column)
	}
	out.WriteString(`</tr></thead><tbody>`)
	for _, s := range series {
		known := slices.DeleteFunc(slices.Clone(s.Values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
		fmt.Fprintf(out, `<tr><th>%s</th>`, escape(s.Name))
		if len(known) == 0 {
			out.WriteString(`<td colspan="4">not known</td></tr>`)
			continue
		}
		sum := 0.0
		for _, v := range known {
			sum += v
		}
		for _, v := range []float64{slices.Min(known), sum / float64(len(known)), slices.Max(known), known[len(known)-1]} {
			fmt.Fprintf(out, `<td class="number">%s</td>`, escape(o.Unit(v)))
		}
		out.WriteString(`</tr>`)
	}
	out.WriteString(`</tbody></table></div></details>`)
}

func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", v), "0"), ".")
}

func escape(text string) string { return template.HTMLEscapeString(text) }
