package lab

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The picture's measures, in pixels.
const (
	svgRow    = 20
	svgColumn = 84
	svgLeft   = 90 // of the first lifeline
	svgText   = 760
	svgTop    = 120
	svgRows   = 400 // more rows are left out: a picture must stay small
)

// bands are the colours of configurations, in the order in which they came into force.
var bands = []string{"#cfe2f3", "#f9d9a8", "#cdeac0", "#e6cff0", "#f6c6c6", "#d8d8b0", "#c2ebe6", "#e0d3c2"}

// picture draws a run: lifelines from top to bottom, with time, and arrows that fall by the time that their message took.
type picture struct {
	r      *Report
	rows   []row
	cut    int // rows left out
	out    strings.Builder
	seen   []string // configurations, for their colours
	bottom int
}

// SVG writes the run as a self-contained picture.
func (r *Report) SVG(out io.Writer) error {
	p := &picture{r: r, rows: r.rows(false)}
	if len(p.rows) > svgRows {
		p.cut = len(p.rows) - svgRows
		p.rows = p.rows[:svgRows]
	}
	p.bottom = svgTop + (len(p.rows)+1)*svgRow
	p.head()
	p.lifelines()
	for i := range p.rows {
		p.row(i)
	}
	p.foot()
	p.out.WriteString("</svg>\n")
	_, err := io.WriteString(out, p.out.String())
	return err
}

func (p *picture) x(id memberID) int { return svgLeft + int(id-1)*svgColumn }
func (p *picture) y(i int) int       { return svgTop + (i+1)*svgRow - svgRow/2 }

func (p *picture) textX() int { return p.x(memberID(p.r.Members)) + svgColumn/2 + 10 }

// yOf returns the place of a moment: the first row of that moment, which is the effect of a message that arrives then, or a
// place between the rows around it.
func (p *picture) yOf(at time.Duration) int {
	next := slices.IndexFunc(p.rows, func(n row) bool { return n.at >= at })
	switch {
	case next < 0:
		return p.y(len(p.rows)-1) + svgRow/2
	case next == 0 || p.rows[next].at == at:
		return p.y(next)
	}
	from, to := p.rows[next-1].at, p.rows[next].at
	return p.y(next-1) + int(float64(svgRow)*float64(at-from)/float64(to-from))
}

func (p *picture) put(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

func escaped(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return ""
	}
	return b.String()
}

func (p *picture) text(x, y int, class, text string) {
	p.put(`<text x="%d" y="%d" class="%s">%s</text>`, x, y, class, escaped(text))
}

func (p *picture) head() {
	var summary strings.Builder
	p.r.summary(&summary)
	height := p.bottom + 40 + 18*strings.Count(summary.String(), "\n")
	width := p.textX() + svgText
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`,
		width, height, width, height)
	p.put(`<title>%s</title>`, escaped(p.r.Title))
	p.put(`<style>text{font:13px system-ui,sans-serif;fill:#222}.t{fill:#777;text-anchor:end;font-size:11px}` +
		`.h{font-weight:600;font-size:16px}.m{text-anchor:middle;font-weight:600}.c{text-anchor:middle;font-size:11px}` +
		`.a{fill:#555}.b{fill:#b00020;font-weight:600}.s{font-family:ui-monospace,monospace;font-size:12px;white-space:pre}` +
		`.w{stroke:#34495e;stroke-width:1.4;fill:none}.x{stroke:#b00020;stroke-dasharray:4 3}</style>`)
	p.put(`<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">` +
		`<path d="M0 0L8 4L0 8z" fill="#34495e"/></marker></defs>`)
	p.put(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	p.text(16, 26, "h", p.r.Title)
	for i, line := range p.r.About {
		p.text(16, 46+16*i, "a", line)
	}
}

// lifelines draws, for each member, a band in the colour of the configuration in force, as long as the member runs.
func (p *picture) lifelines() {
	for id := memberID(1); int(id) <= p.r.Members; id++ {
		p.text(p.x(id), svgTop-8, "m", id.String())
		for i := 0; i < len(p.rows); {
			cell := p.rows[i].cells[id-1]
			j := i
			for j < len(p.rows) && p.rows[j].cells[id-1] == cell {
				j++
			}
			if cell.Config != "" {
				p.band(id, cell, i, j)
			}
			i = j
		}
	}
}

func (p *picture) band(id memberID, cell Cell, from, to int) {
	y, height := p.y(from)-svgRow/2, (to-from)*svgRow
	width := 14
	if cell.Glyph == glyphLeader {
		width = 26
	}
	at := slices.Index(p.seen, cell.Config)
	if at < 0 {
		at = len(p.seen)
		p.seen = append(p.seen, cell.Config)
	}
	style := ""
	switch cell.Glyph {
	case glyphJoint:
		style = ` stroke="#555" stroke-width="1.5"`
	case glyphLearner:
		style = ` fill-opacity="0.4" stroke="#999" stroke-dasharray="2 3"`
	case glyphLeader:
		style = ` stroke="#b8860b" stroke-width="1.5"`
	case glyphCandidate:
		style = ` stroke="#7a3fa0" stroke-dasharray="3 2"`
	}
	p.put(`<rect x="%d" y="%d" width="%d" height="%d" rx="3" fill="%s"%s><title>%s</title></rect>`,
		p.x(id)-width/2, y, width, height, bands[at%len(bands)], style, escaped(cell.Config))
	if cell.Glyph == glyphLeader && p.rows[from].marks[id] == "" {
		p.text(p.x(id), y+14, "c", "★")
	}
}

func (p *picture) row(i int) {
	n := &p.rows[i]
	y := p.y(i)
	class := "a"
	switch {
	case n.note:
		p.text(svgLeft-34, y+4, "t", "⋮")
	case n.kind == KindBreach:
		class = "b"
		fallthrough
	default:
		p.text(svgLeft-34, y+4, "t", ms(n.at))
	}
	for _, a := range n.arrows {
		p.arrow(a, y)
	}
	for id := memberID(1); int(id) <= p.r.Members; id++ {
		switch mark := n.marks[id]; mark {
		case "":
		case "✖", "!":
			p.put(`<text x="%d" y="%d" class="c b" style="font-size:17px">%s</text>`, p.x(id), y+6, mark)
		default:
			p.text(p.x(id), y+4, "c", mark)
		}
	}
	text := n.words()
	if limit := 118; len([]rune(text)) > limit {
		text = string([]rune(text)[:limit-1]) + "…"
	}
	p.text(p.textX(), y+4, class, text)
}

func (p *picture) arrow(a *Arrow, y int) {
	from, to := p.x(a.From), p.x(a.To)
	gap := 9
	if to < from {
		gap = -9
	}
	if a.Lost || a.Arrived == 0 {
		end := from + (to-from)*7/10
		p.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="w x"/>`, from+gap, y, end, y+5)
		p.put(`<text x="%d" y="%d" class="c b">✕</text>`, end, y+9)
		return
	}
	p.put(`<line x1="%d" y1="%d" x2="%d" y2="%d" class="w" marker-end="url(#head)"><title>%s</title></line>`,
		from+gap, y, to-gap, max(y, p.yOf(a.Arrived)), escaped(a.What))
}

func (p *picture) foot() {
	y := p.bottom + 16
	if p.cut > 0 {
		p.text(16, y, "a", fmt.Sprintf("%d more lines are left out", p.cut))
	}
	var summary strings.Builder
	p.r.summary(&summary)
	for line := range strings.Lines(summary.String()) {
		y += 18
		p.put(`<text x="16" y="%d" class="s" xml:space="preserve">%s</text>`, y, escaped(strings.TrimRight(line, "\n")))
	}
}
