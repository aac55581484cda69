package keys

import (
	"slices"
	"strings"
)

// Bounds of a difference.
const (
	mostDiffed   = 256 << 10 // bytes of a text that is compared
	mostLines    = 20_000    // of a text that is compared
	mostChanges  = 500       // lines, until two texts are too different to be aligned
	mostRows     = 600       // that are shown
	mostRowBytes = 200 << 10 // of all lines that are shown
	mostLine     = 600       // characters of a line that are shown
	around       = 3         // equal lines that are shown beside a change
)

// change is one line of a difference.
type change struct {
	Sign     string // "", "-" or "+"
	Class    string // of the row: empty, del, add, or gap, where lines are left out
	Old, New int    // numbers of the line, from 1; 0: it has none
	Text     string
}

// comparison is the difference between two texts, by lines.
type comparison struct {
	Same     bool
	Rows     []change
	Added    int
	Removed  int
	Rough    bool // they are too different to be aligned: all lines between the common ones count as changed
	Endings  bool // they differ in how lines end, too
	Left     int  // rows that are not shown
	TooLarge bool
}

// compare finds a shortest difference between two texts, unless they are large or very different.
func compare(before, after string) (c comparison) {
	if before == after {
		return comparison{Same: true}
	}
	c.Endings = strings.Contains(before, "\r\n") != strings.Contains(after, "\r\n")
	a, b := linesOf(before), linesOf(after)
	if len(before) > mostDiffed || len(after) > mostDiffed || len(a) > mostLines || len(b) > mostLines {
		c.TooLarge = true
		return c
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	script, ok := shortest(a[head:len(a)-tail], b[head:len(b)-tail])
	if !ok {
		c.Rough = true
		script = slices.Concat(slices.Repeat([]byte{'-'}, len(a)-tail-head), slices.Repeat([]byte{'+'}, len(b)-tail-head))
	}
	script = slices.Concat(slices.Repeat([]byte{'='}, head), script, slices.Repeat([]byte{'='}, tail))
	c.show(a, b, script)
	return c
}

// linesOf divides a text into lines with their ends: two texts that differ in the last end differ in their last line.
func linesOf(text string) []string { return slices.Collect(strings.Lines(text)) }

// shortest is the edit script from one list of lines to another ('-', '+', '='), by the greedy algorithm of Myers. It returns
// false if there are more than mostChanges.
func shortest(a, b []string) (script []byte, ok bool) {
	most := min(len(a)+len(b), mostChanges)
	ends := make([]int, 2*most+3) // by diagonal: how far the furthest path has come in a
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(ends[most+1-d:most+2+d]))
		for k := -d; k <= d; k += 2 {
			x := 0
			switch at := most + 1 + k; {
			case d == 0:
			case k == -d || k != d && ends[at-1] < ends[at+1]:
				x = ends[at+1]
			default:
				x = ends[at-1] + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			ends[most+1+k] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(a, b, trace), true
			}
		}
	}
	return nil, false
}

// walkBack follows the paths of shortest from the end. trace has for each d the ends of d-1, for the diagonals from -d to d.
func walkBack(a, b []string, trace [][]int) (script []byte) {
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		ends, k := trace[d], x-y
		at := d + k
		down := k == -d || k != d && ends[at-1] < ends[at+1]
		from, sign := 0, byte('-')
		if down {
			from, sign = ends[at+1], '+'
		} else {
			from = ends[at-1] + 1
		}
		for x > from {
			script = append(script, '=')
			x, y = x-1, y-1
		}
		script = append(script, sign)
		if down {
			y--
		} else {
			x--
		}
	}
	for ; x > 0; x-- {
		script = append(script, '=')
	}
	slices.Reverse(script)
	return script
}

// show makes the rows of a script: the changes, and some equal lines around them.
func (c *comparison) show(a, b []string, script []byte) {
	near := make([]bool, len(script))
	for i, sign := range script {
		if sign != '=' {
			for j := max(0, i-around); j <= min(len(script)-1, i+around); j++ {
				near[j] = true
			}
		}
	}
	old, fresh, bytes, gap := 0, 0, 0, false
	for i, sign := range script {
		one := change{}
		if sign != '+' {
			old++
			one.Old, one.Text = old, a[old-1]
		}
		if sign != '-' {
			fresh++
			one.New, one.Text = fresh, b[fresh-1]
		}
		switch sign {
		case '+':
			c.Added++
			one.Sign, one.Class = "+", "add"
		case '-':
			c.Removed++
			one.Sign, one.Class = "-", "del"
		}
		if !near[i] {
			gap = true
			continue
		}
		if gap {
			c.Rows, gap = append(c.Rows, change{Class: "gap"}), false
		}
		if len(c.Rows) >= mostRows || bytes > mostRowBytes {
			c.Left++
			continue
		}
		one.Text = lineText(one.Text)
		bytes += len(one.Text)
		c.Rows = append(c.Rows, one)
	}
}

// lineText is a line as it is shown: its end only if it is not a line feed.
func lineText(line string) string {
	text, fed := strings.CutSuffix(line, "\n")
	text, returned := strings.CutSuffix(text, "\r")
	text = visible(cut(text, mostLine))
	if returned {
		text += `\r`
	}
	if !fed {
		text += " (no line feed at the end)"
	}
	return text
}
