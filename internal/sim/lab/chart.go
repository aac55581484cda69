package lab

import (
	"fmt"
	"io"
	"strings"
)

// The chart's columns, in runes.
const (
	timeWidth  = 8
	chartWidth = 138
)

const legend = `A column for each member, time in milliseconds downwards.
  ★ leads   │ votes   ║ votes, while a joint configuration needs the majorities of two sets   ┊ learner   ? candidate
  ──▶ message (left out: repeats, writes, heartbeats, acknowledgements that decide nothing)   ──╳ lost
  C7 {1,2,3 +4} the configuration of log entry 7: voters, + learners   J7 {1,2,3|3,4} joint: before|after   C7' of another term
  C7, J7 in a column: in force there now   ✓ known to be committed   ✔ settled, whoever left may be switched off   ↩ undone
  ✖ crash   ↻ restart   ■ switched off for ever   ⊘ knows that it is removed   ! a law is broken
`

// Chart writes the run as text.
func (r *Report) Chart(out io.Writer, verbose bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Title)
	for _, line := range r.About {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteString("\n" + legend + "\n")
	r.head(&b)
	for _, n := range r.rows(verbose) {
		fmt.Fprintln(&b, r.draw(&n))
	}
	b.WriteString("\n")
	r.summary(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// Summary writes the result alone.
func (r *Report) Summary(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Title)
	for _, line := range r.About[:min(1, len(r.About))] {
		fmt.Fprintf(&b, "%s\n", line)
	}
	r.summary(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) pitch() int {
	if r.Members > 6 {
		return 5
	}
	return 6
}

func (r *Report) column(id memberID) int { return timeWidth + 2 + int(id-1)*r.pitch() }

func (r *Report) head(b *strings.Builder) {
	line := []rune(strings.Repeat(" ", r.column(memberID(r.Members))+2))
	copy(line[timeWidth-2:], []rune("ms"))
	for id := memberID(1); int(id) <= r.Members; id++ {
		copy(line[r.column(id):], []rune(id.String()))
	}
	fmt.Fprintln(b, strings.TrimRight(string(line), " "))
}

// draw returns one line of the chart.
func (r *Report) draw(n *row) string {
	textAt := r.column(memberID(r.Members)) + r.pitch()
	line := []rune(strings.Repeat(" ", textAt))
	for i, cell := range n.cells {
		line[r.column(memberID(i+1))] = cell.Glyph
	}
	text := n.words()
	if n.note {
		copy(line[timeWidth-2:], []rune("⋮"))
		text = "  " + text
	} else {
		copy(line, []rune(fmt.Sprintf("%*s", timeWidth, ms(n.at))))
	}
	r.drawArrows(line, n)
	for id := memberID(1); int(id) <= r.Members; id++ {
		copy(line[r.column(id):], []rune(n.marks[id]))
	}
	whole := append(line, []rune(text)...)
	if len(whole) > chartWidth {
		whole = append(whole[:chartWidth-1], '…')
	}
	return strings.TrimRight(string(whole), " ")
}

// drawArrows draws the longest arrow first, so that the heads of the others stay visible.
func (r *Report) drawArrows(line []rune, n *row) {
	for reach := r.Members; reach > 0; reach-- {
		for _, a := range n.arrows {
			if distance(a) == reach {
				r.drawArrow(line, a, n)
			}
		}
	}
	for _, a := range n.arrows {
		if len(n.arrows) > 1 && n.arrows[0].To == n.arrows[1].To {
			continue
		}
		line[r.column(a.To)] = n.cells[a.To-1].Glyph
		if n.cells[a.To-1].Glyph == glyphDown {
			line[r.column(a.To)] = '·'
		}
	}
}

func distance(a *Arrow) int { return max(int(a.To)-int(a.From), int(a.From)-int(a.To)) }

func (r *Report) drawArrow(line []rune, a *Arrow, n *row) {
	from, to := r.column(a.From), r.column(a.To)
	step, head := 1, '▶'
	if to < from {
		step, head = -1, '◀'
	}
	if a.Lost {
		head = '╳'
	}
	for x := from + step; x != to; x += step {
		switch {
		case (x-timeWidth-2)%r.pitch() != 0:
			line[x] = '─'
		case line[x] != glyphDown:
			line[x] = '┼'
		default:
			line[x] = '─'
		}
	}
	line[to-step] = head
	line[from] = n.cells[a.From-1].Glyph
}
