package pictures

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Changes are membership changes by several protocols, as `go run . protocols` measured them.
type Changes struct {
	Date, Version, Machine, Command string

	RoundTripMillis float64
	Trials          []Trial
}

// Trial is one change by one protocol. Times are from the begin of the change on, when newcomers have caught up.
type Trial struct {
	Change, Protocol string
	Dead             bool    // a voter that stays was dead
	DecidedMillis    float64 // until a member told that no leader can undo it
	SettledMillis    float64 // until the removed member may be switched off
	PauseMillis      float64 // the longest time without an acknowledged write

	// Of writes during the change and half a second afterwards: latency, and how many failed.
	MedianMillis, P99Millis, Failed float64 `json:",omitempty"`
}

// String implements fmt.Stringer.
func (t *Trial) String() string {
	dead := ""
	if t.Dead {
		dead = ", one dead"
	}
	return fmt.Sprintf("%s%s by %s: decided after %.0f ms, settled after %.0f ms, %.0f ms without a write", t.Change, dead,
		t.Protocol, t.DecidedMillis, t.SettledMillis, t.PauseMillis)
}

// ReadChanges reads what Write wrote.
func ReadChanges(in io.Reader) (*Changes, error) {
	c := &Changes{}
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(c); err != nil {
		return nil, fmt.Errorf("pictures: read changes: %w", err)
	}
	return c, nil
}

// Write writes them as JSON.
func (c *Changes) Write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

// changeNames are the changes, and whether one was dead, in the order of the trials.
func (c *Changes) changeNames() (all []string) {
	for i := range c.Trials {
		if !slices.Contains(all, c.Trials[i].Change) {
			all = append(all, c.Trials[i].Change)
		}
	}
	return all
}

func (c *Changes) find(change, protocol string, dead bool) *Trial {
	for i := range c.Trials {
		if t := &c.Trials[i]; t.Change == change && t.Protocol == protocol && t.Dead == dead {
			return t
		}
	}
	return nil
}

func (c *Changes) protocols() (all []string) {
	for i := range c.Trials {
		if !slices.Contains(all, c.Trials[i].Protocol) {
			all = append(all, c.Trials[i].Protocol)
		}
	}
	return all
}

// Table writes a table of Markdown, in milliseconds.
func (c *Changes) Table(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| change | protocol | decided | settled | pause | latency p50, p99 | failed | " +
		"one dead: decided | settled | pause | latency p50, p99 | failed |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	cell := func(t *Trial) string {
		if t == nil {
			return " — | — | — | — | — |"
		}
		return fmt.Sprintf(" %.0f | %.0f | %.0f | %.0f, %.0f | %.0f |", t.DecidedMillis, t.SettledMillis, t.PauseMillis,
			t.MedianMillis, t.P99Millis, t.Failed)
	}
	for _, change := range c.changeNames() {
		name := change
		for _, protocol := range c.protocols() {
			up, dead := cell(c.find(change, protocol, false)), cell(c.find(change, protocol, true))
			fmt.Fprintf(&b, "| %s | `%s` |%s%s\n", name, protocol, up, dead)
			name = ""
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Draw draws bars, with all members up at the left and with one dead at the right: strong until the change is decided, faint
// until it is settled.
func (c *Changes) Draw() []byte {
	p := newCanvas("A membership change, by protocol",
		fmt.Sprintf("Milliseconds from the begin of the change on, real members with a round trip of %.0f ms between them, "+
			"under load", c.RoundTripMillis))
	p.legend(margin, p.y+14, []entry{boxEntry("until nobody can undo it (decided)", colour("f", 1)),
		{"until who left may be switched off (settled)", func(p *canvas, x, y float64) {
			p.addf(`<rect x="%s" y="%s" width="16" height="12" class="%s" opacity=".35"/>`, at(x+2), at(y-10), colour("f", 1))
		}}})
	const label, gap, row, bar = 96, 40, 17, 11
	each := (width - 2*margin - label - gap) / 2.0
	most := 0.0
	for i := range c.Trials {
		most = max(most, c.Trials[i].SettledMillis)
	}
	marks := steps(most)
	y := p.y + 56
	panels := []struct {
		title string
		dead  bool
		x     scale
	}{
		{"all members up", false, scale{to: marks[len(marks)-1], begin: margin + label, end: margin + label + each - 40}},
		{"one voter dead", true, scale{to: marks[len(marks)-1], begin: margin + label + each + gap, end: width - margin - 40}},
	}
	for _, panel := range panels {
		p.text(panel.x.begin, y-14, "p", panel.title)
	}
	bottom := y + float64(len(c.changeNames()))*(30+row*float64(len(c.protocols())))
	for _, panel := range panels {
		for _, v := range marks {
			p.line(panel.x.at(v), y, panel.x.at(v), bottom, "g")
			p.text(panel.x.at(v), bottom+16, "d m", count(v))
		}
	}
	for _, change := range c.changeNames() {
		p.text(margin, y+12, "p", change)
		y += 22
		for _, protocol := range c.protocols() {
			p.text(margin+label-8, y+10, "d e", protocol)
			for _, panel := range panels {
				if t := c.find(change, protocol, panel.dead); t != nil {
					p.bar(t, panel.x, y, bar)
				}
			}
			y += row
		}
		y += 8
	}
	p.y = bottom + 24
	return p.finish(&Results{Date: c.Date, Servers: []Server{{Name: "quorate", Version: c.Version}}, Machine: c.Machine,
		Command: c.Command, Others: notMeasured})
}

func (c *canvas) bar(t *Trial, x scale, y, height float64) {
	class := colour("f", 1)
	c.addf(`<rect x="%s" y="%s" width="%s" height="%s" class="%s" opacity=".35"><title>%s</title></rect>`, at(x.begin), at(y),
		at(x.at(t.SettledMillis)-x.begin), at(height), class, escape(t.String()))
	c.box(x.begin, y, x.at(t.DecidedMillis)-x.begin, height, class)
	c.text(x.at(t.SettledMillis)+5, y+10, "f", fmt.Sprintf("%.0f, %.0f", t.DecidedMillis, t.SettledMillis))
}
