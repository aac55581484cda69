package chart

import (
	"fmt"
	"html/template"
	"strings"
)

// Part is one part of a bar.
type Part struct {
	Name  string
	Value float64
	Label string // its value in words
	Quiet bool   // it is what is left: it has no colour of its own
}

// Row is one bar of several, of mostSeries parts at most. The parts of all rows have the same names, in the same order.
type Row struct {
	Name  string
	Parts []Part
	Label string // of the whole, in words
}

// Bar draws parts of a whole as one bar, with a legend that has their values.
func Bar(title string, parts ...Part) template.HTML {
	parts = parts[:min(len(parts), mostSeries)]
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="bar" width="100%%" height="14" role="img" aria-label="%s">`, escape(title))
	drawParts(&out, parts, sum(parts))
	out.WriteString(`</svg><ul class="legend">`)
	for i, p := range parts {
		out.WriteString(`<li>`)
		swatch(&out, i, p)
		fmt.Fprintf(&out, `%s %s</li>`, escape(p.Name), escape(p.Label))
	}
	out.WriteString(`</ul>`)
	return template.HTML(out.String()) // #nosec: every text is escaped
}

// Bars draws rows of parts at one scale, so that their lengths can be compared, with a legend and a table of the values.
func Bars(title string, rows ...Row) template.HTML {
	var out strings.Builder
	whole, names := 0.0, []Part(nil)
	for _, r := range rows {
		whole = max(whole, sum(r.Parts))
		if len(r.Parts) > len(names) {
			names = r.Parts
		}
	}
	fmt.Fprintf(&out, `<div class="bars" role="img" aria-label="%s">`, escape(title))
	for _, r := range rows {
		fmt.Fprintf(&out, `<span class="who">%s</span><svg class="bar" width="100%%" height="14" aria-hidden="true">`,
			escape(r.Name))
		drawParts(&out, r.Parts, whole)
		fmt.Fprintf(&out, `</svg><span class="sum">%s</span>`, escape(r.Label))
	}
	out.WriteString(`</div><ul class="legend">`)
	for i, p := range names {
		out.WriteString(`<li>`)
		swatch(&out, i, p)
		fmt.Fprintf(&out, `%s</li>`, escape(p.Name))
	}
	out.WriteString(`</ul>`)
	tableOfParts(&out, title, names, rows)
	return template.HTML(out.String()) // #nosec: every text is escaped
}

func tableOfParts(out *strings.Builder, title string, names []Part, rows []Row) {
	beginTable(out, title)
	for _, p := range names {
		fmt.Fprintf(out, `<th scope="col" class="number">%s</th>`, escape(p.Name))
	}
	out.WriteString(`<th scope="col" class="number">all</th></tr></thead><tbody>`)
	for _, r := range rows {
		fmt.Fprintf(out, `<tr><th scope="row">%s</th>`, escape(r.Name))
		for i := range names {
			label := ""
			if i < len(r.Parts) {
				label = r.Parts[i].Label
			}
			fmt.Fprintf(out, `<td class="number">%s</td>`, escape(label))
		}
		fmt.Fprintf(out, `<td class="number">%s</td></tr>`, escape(r.Label))
	}
	out.WriteString(`</tbody></table></div></details>`)
}

// drawParts draws parts of a whole that is as wide as the drawing. The gap between two parts is one of their background.
func drawParts(out *strings.Builder, parts []Part, whole float64) {
	out.WriteString(`<rect class="track" width="100%" height="14" rx="2"/>`)
	x := 0.0
	for i, p := range parts[:min(len(parts), mostSeries)] {
		if whole <= 0 || !known(p.Value) || p.Value <= 0 {
			continue
		}
		w := 100 * min(p.Value, largest) / whole
		fmt.Fprintf(out, `<rect class="%s part" x="%s%%" width="%s%%" height="14"><title>%s %s</title></rect>`, fill(i, p),
			number(x), number(w), escape(p.Name), escape(p.Label))
		x += w
	}
}

func sum(parts []Part) (all float64) {
	for _, p := range parts {
		if known(p.Value) {
			all += min(max(p.Value, 0), largest)
		}
	}
	return all
}

func swatch(out *strings.Builder, i int, p Part) {
	fmt.Fprintf(out, `<svg viewBox="0 0 26 12" aria-hidden="true"><rect class="%s" y="1" width="26" height="10" rx="2"/></svg>`,
		fill(i, p))
}

// fill is the class of the colour of a part.
func fill(i int, p Part) string {
	if p.Quiet {
		return "quiet"
	}
	return fmt.Sprintf("f%d", i+1)
}
