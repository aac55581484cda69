package chart

import (
	"cmp"
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

// Options say what a figure is of.
type Options struct {
	Title string // for readers who do not see it
	// Unit makes a label of a value.
	Unit func(float64) string
	// Past is how long ago the first value was, such as "10 min ago", and Half the one in the middle; empty: it is not said.
	Past, Half string
	// Least is the least top of the scale: a chart of small numbers does not look like one of large ones.
	Least float64
	// Most is the largest top of the scale, for shares; 0: it has none.
	Most float64
}

// The plot of a figure in its own units: across it stretches, and up and down they are pixels.
const (
	across, height = 1000.0, 132.0
	above, below   = 8.0, 6.0
	apart          = 13.0 // two labels at the ends of lines
	mostLabel      = 16   // characters of such a label
)

// Lines draws series over time: labels stand at the ends of the lines if there are several, and a table is behind it.
func Lines(o Options, series ...Series) template.HTML {
	var out strings.Builder
	drawn := series[:min(len(series), mostSeries)]
	top := topOf(&o, drawn)
	fmt.Fprintf(&out, `<div class="lines"><div class="figure" role="img" aria-label="%s">`, escape(o.Title))
	fmt.Fprintf(&out, `<svg class="ys" height="%g" aria-hidden="true">`, height)
	for _, share := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&out, `<text x="100%%" y="%s" text-anchor="end">%s</text>`, number(yOf(share*top, top)+4),
			escape(o.Unit(share*top)))
	}
	fmt.Fprintf(&out, `</svg><svg class="plot" height="%g" viewBox="0 0 %g %g" preserveAspectRatio="none" aria-hidden="true">`,
		height, across, height)
	for _, share := range []float64{0, 0.5, 1} {
		y := number(yOf(share*top, top))
		fmt.Fprintf(&out, `<line class="grid" x1="0" y1="%s" x2="%g" y2="%s"/>`, y, across, y)
	}
	for i, s := range drawn {
		for _, run := range runs(s.Values) {
			points := pointsOf(s.Values, run, top)
			if len(series) == 1 {
				fmt.Fprintf(&out, `<polygon class="area f%d" points="%s"/>`, i+1, closed(points, s.Values, run))
			}
			fmt.Fprintf(&out, `<polyline class="line s%d" points="%s"/>`, i+1, strings.Join(points, " "))
		}
	}
	out.WriteString(`</svg>`)
	ends(&out, drawn, top)
	fmt.Fprintf(&out, `<div class="xs" aria-hidden="true"><span>%s</span><span>%s</span><span>now</span></div></div>`,
		escape(o.Past), escape(o.Half))
	if more := len(series) - len(drawn); more > 0 {
		fmt.Fprintf(&out, `<p class="note">%d more are in the table only.</p>`, more)
	}
	table(&out, &o, series)
	out.WriteString(`</div>`)
	return template.HTML(out.String()) // #nosec: every text is escaped
}

func topOf(o *Options, series []Series) float64 {
	top := o.Least
	for _, s := range series {
		for _, v := range s.Values {
			if known(v) {
				top = max(top, min(v, largest))
			}
		}
	}
	top = roundUp(top)
	if o.Most > 0 {
		top = min(top, o.Most)
	}
	return top
}

// roundUp is the next number that is easy to read: 1, 2 or 5 times a power of ten.
func roundUp(n float64) float64 {
	if n < 1/largest {
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
		return across
	}
	return across * float64(i) / float64(n-1)
}

func yOf(v, top float64) float64 { return above + (height-above-below)*(1-min(max(v, 0), top)/top) }

// run is a range of values that are known.
type run struct{ from, to int }

func runs(values []float64) (all []run) {
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
		before := number(max(0, xOf(r.from, len(values))-4)) + "," + number(yOf(values[r.from], top))
		points = append([]string{before}, points...)
	}
	return points
}

func closed(points []string, values []float64, r run) string {
	base := number(yOf(0, 1))
	return fmt.Sprintf("%s,%s %s %s,%s", number(xOf(r.from, len(values))), base, strings.Join(points, " "),
		number(xOf(r.to-1, len(values))), base)
}

// end is the label at the end of a line.
type end struct {
	series int
	y      float64
}

// ends writes the names of the lines where they end, each as near as the others let it.
func ends(out *strings.Builder, series []Series, top float64) {
	if len(series) < 2 {
		return
	}
	var labels []end
	for i, s := range series {
		if all := runs(s.Values); len(all) > 0 {
			labels = append(labels, end{i, yOf(s.Values[all[len(all)-1].to-1], top)})
		}
	}
	slices.SortStableFunc(labels, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	spread(labels)
	names, longest := make([]string, len(labels)), 0
	for i, l := range labels {
		name := []rune(series[l.series].Name)
		if len(name) > mostLabel {
			name = append(name[:mostLabel-1], '…')
		}
		names[i], longest = string(name), max(longest, len(name))
	}
	fmt.Fprintf(out, `<svg class="ends" width="%d" height="%g" aria-hidden="true">`, 30+7*longest, height)
	for i, l := range labels {
		y := number(l.y)
		fmt.Fprintf(out, `<line class="line s%d" x1="4" y1="%s" x2="22" y2="%s"/><text x="27" y="%s">%s</text>`, l.series+1,
			y, y, number(l.y+4), escape(names[i]))
	}
	out.WriteString(`</svg>`)
}

// spread moves labels, which are in the order of their places, until none covers another.
func spread(labels []end) {
	for i := range labels {
		if i > 0 {
			labels[i].y = max(labels[i].y, labels[i-1].y+apart)
		}
	}
	floor := height - below
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].y = min(labels[i].y, floor)
		floor = labels[i].y - apart
	}
}

// table has the least, the mean, the largest and the last value of each line.
func table(out *strings.Builder, o *Options, series []Series) {
	beginTable(out, o.Title)
	for _, name := range []string{"least", "mean", "most", "last"} {
		fmt.Fprintf(out, `<th scope="col" class="number">%s</th>`, name)
	}
	out.WriteString(`</tr></thead><tbody>`)
	for _, s := range series {
		values := slices.DeleteFunc(slices.Clone(s.Values), func(v float64) bool { return !known(v) })
		fmt.Fprintf(out, `<tr><th scope="row">%s</th>`, escape(s.Name))
		if len(values) == 0 {
			out.WriteString(`<td colspan="4">not known</td></tr>`)
			continue
		}
		sum := 0.0
		for _, v := range values {
			sum += v
		}
		for _, v := range []float64{slices.Min(values), sum / float64(len(values)), slices.Max(values), values[len(values)-1]} {
			fmt.Fprintf(out, `<td class="number">%s</td>`, escape(o.Unit(v)))
		}
		out.WriteString(`</tr>`)
	}
	out.WriteString(`</tbody></table></div></details>`)
}
