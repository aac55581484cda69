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
}

// Bar draws parts of a whole as one bar, with a legend that has their values.
func Bar(title string, parts ...Part) template.HTML {
	parts = parts[:min(len(parts), mostSeries)]
	sum := 0.0
	for _, p := range parts {
		sum += max(p.Value, 0)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart" viewBox="0 0 560 14" role="img" aria-label="%s">`, escape(title))
	if sum == 0 {
		out.WriteString(`<rect class="grid" x="0.5" y="0.5" width="559" height="13" rx="3" fill="none"/>`)
	}
	x := 0.0
	for i, p := range parts {
		if sum == 0 || p.Value <= 0 {
			continue
		}
		w := 560 * p.Value / sum
		fmt.Fprintf(&out, `<rect class="f%d" x="%s" y="0" width="%s" height="14"/>`, i+1, number(x), number(max(w-1, 0.5)))
		x += w
	}
	out.WriteString(`</svg><ul class="legend">`)
	for i, p := range parts {
		fmt.Fprintf(&out, `<li><svg viewBox="0 0 26 10" aria-hidden="true"><rect class="f%d" width="26" height="10" `+
			`rx="2"/></svg>%s %s</li>`, i+1, escape(p.Name), escape(p.Label))
	}
	out.WriteString(`</ul>`)
	return template.HTML(out.String()) // #nosec: every text is escaped
}
