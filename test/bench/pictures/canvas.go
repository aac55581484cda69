package pictures

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

const (
	width      = 900
	margin     = 24
	lineHeight = 16
	footSize   = 11
	perLine    = 138 // characters of the foot's font on a line
)

// style follows the theme of the reader's program. It has no variables, which not every program that shows SVG knows.
var style = `text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}` +
	`.h{font-size:17px;font-weight:600}.p{font-size:13px;font-weight:600}.f{font-size:11px}.e{text-anchor:end}` +
	`.m{text-anchor:middle}.g{stroke-width:1}.a{stroke-width:1.2}.l{fill:none;stroke-width:2.2;stroke-linejoin:round;` +
	`stroke-linecap:round}.n{stroke-width:1.2;opacity:.8}` +
	`.k{opacity:.16}.o{opacity:.24}.q{opacity:.45}.kl,.ol{stroke-width:1.2}` +
	light.css() + "@media(prefers-color-scheme:dark){" + dark.css() + "}"

// theme is the colours of everything. A server's colour is that of its place: etcd's orange, ours blue.
type theme struct {
	background, ink, dim, grid, axis string
	servers                          [3]string
	compaction, defragmentation      string
}

var (
	light = theme{"#ffffff", "#1f2328", "#59636e", "#dde2e8", "#8c959f", [3]string{"#c2570c", "#0b63ce", "#6e4bb8"},
		"#8250df", "#bf8700"}
	dark = theme{"#0d1117", "#e6edf3", "#9198a1", "#2a3038", "#6e7681", [3]string{"#f0883e", "#58a6ff", "#bc8cff"},
		"#bc8cff", "#e3b341"}
)

func (t theme) css() string {
	text := fmt.Sprintf("text{fill:%s}.d,.f{fill:%s}.bg{fill:%s}.g{stroke:%s}.a{stroke:%s}.k{fill:%s}.kl{stroke:%s}.o{fill:%s}"+
		".ol{stroke:%s}.q{fill:%s}", t.ink, t.dim, t.background, t.grid, t.axis, t.compaction, t.compaction, t.defragmentation,
		t.defragmentation, t.axis)
	for i, colour := range t.servers {
		text += fmt.Sprintf(".s%d{stroke:%s}.f%d{fill:%s}", i, colour, i, colour)
	}
	return text
}

// canvas is a picture that grows downwards.
type canvas struct {
	body bytes.Buffer
	y    float64 // where the next thing begins
}

func newCanvas(title, subtitle string) *canvas {
	c := &canvas{}
	c.text(margin, 34, "h", title)
	c.text(margin, 54, "d", subtitle)
	c.y = 66
	return c
}

func (c *canvas) addf(format string, values ...any) { fmt.Fprintf(&c.body, format+"\n", values...) }

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder takes everything
	return out.String()
}

func (c *canvas) text(x, y float64, class, text string) {
	c.addf(`<text x="%s" y="%s" class="%s">%s</text>`, at(x), at(y), class, escape(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.addf(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, at(x1), at(y1), at(x2), at(y2), class)
}

func (c *canvas) box(x, y, w, h float64, class string) {
	c.addf(`<rect x="%s" y="%s" width="%s" height="%s" class="%s"/>`, at(x), at(y), at(w), at(h), class)
}

// path is a line through points, which ends and begins again where one is not a number.
func (c *canvas) path(xs, ys []float64, class string) {
	var d strings.Builder
	pen := "M"
	for i := range xs {
		if math.IsNaN(ys[i]) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&d, "%s%s %s", pen, at(xs[i]), at(ys[i]))
		pen = "L"
	}
	c.addf(`<path d="%s" class="%s"/>`, d.String(), class)
}

// at writes a coordinate with one digit.
func at(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// legend names what the colours are, from x on.
func (c *canvas) legend(x, y float64, entries []entry) {
	for _, e := range entries {
		e.sample(c, x, y)
		c.text(x+26, y, "", e.text)
		x += 26 + 6.5*float64(len(e.text)) + 20
	}
}

// entry is one of a legend: a sample that is drawn left of its text.
type entry struct {
	text   string
	sample func(c *canvas, x, y float64)
}

func lineEntry(text, class string) entry {
	return entry{text, func(c *canvas, x, y float64) { c.line(x, y-4, x+20, y-4, class) }}
}

func boxEntry(text, class string) entry {
	return entry{text, func(c *canvas, x, y float64) { c.box(x+2, y-10, 16, 12, class) }}
}

// finish writes below everything from what the picture comes, and returns it.
func (c *canvas) finish(r *Results) []byte {
	y := c.y + 8
	var versions []string
	for _, s := range r.Servers {
		versions = append(versions, s.Name+": "+s.Version)
	}
	foot := r.Date + "; " + strings.Join(versions, "; ") + "; " + r.Machine
	if r.Others != notMeasured {
		foot += fmt.Sprintf("; other processes took %.0f %% of it", r.Others)
	}
	lines := wrap(foot, perLine)
	for _, line := range append(lines, wrap(r.Command, perLine)...) {
		y += lineHeight
		c.text(margin, y, "f", line)
	}
	height := y + margin*0.7
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %s" width="%d" height="%s" role="img">`+"\n",
		width, at(height), width, at(height))
	fmt.Fprintf(&out, "<style>%s</style>\n<rect width=\"%d\" height=\"%s\" rx=\"8\" class=\"bg\"/>\n", style, width, at(height))
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// wrap breaks a text at blanks.
func wrap(text string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// count writes a number with a comma before each three digits.
func count(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func colour(prefix string, server int) string { return fmt.Sprintf("%s%d", prefix, server%3) }

// workloadTitles are what the panels say.
var workloadTitles = map[string]string{"put": "Puts", "range": "Linearizable reads"}

func titleOf(workload string) string {
	if title := workloadTitles[workload]; title != "" {
		return title
	}
	return workload
}

// short writes a number with as few digits as tell it.
func short(v float64) string {
	switch {
	case v >= 10:
		return count(v)
	case v >= 1:
		return at(v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}
