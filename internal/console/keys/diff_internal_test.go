package keys

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
)

// apply makes the later text of a script.
func apply(a, b []string, script []byte) (before, after string) {
	x, y := 0, 0
	for _, sign := range script {
		if sign != '+' {
			before += a[x]
		}
		if sign == '=' && a[x] != b[y] {
			return "lines that differ are said to be equal", ""
		}
		if sign != '-' {
			after += b[y]
			y++
		}
		if sign != '+' {
			x++
		}
	}
	return before, after
}

// distance is the length of a shortest script, by the table of all prefixes.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		last := row[0]
		row[0] = i + 1
		for j := range b {
			best := min(row[j+1], row[j]) + 1
			if a[i] == b[j] {
				best = min(best, last)
			}
			last, row[j+1] = row[j+1], best
		}
	}
	return row[len(b)]
}

// Ensure that scripts lead from one text to the other, and are as short as can be.
func TestShortest(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewSource(seed))
	draw := func() (lines []string) {
		for range rng.Intn(12) {
			lines = append(lines, string(rune('a'+rng.Intn(3)))+"\n")
		}
		return lines
	}
	for range 3000 {
		a, b := draw(), draw()
		script, ok := shortest(a, b)
		before, after := apply(a, b, script)
		if !ok || before != strings.Join(a, "") || after != strings.Join(b, "") {
			t.Fatalf("seed %d: from %q to %q: %v, %q gives %q and %q", seed, a, b, ok, script, before, after)
		}
		if got, want := len(script)-bytes.Count(script, []byte("=")), distance(a, b); got != want {
			t.Fatalf("seed %d: from %q to %q: %d changes, want %d", seed, a, b, got, want)
		}
	}
}

// Ensure that texts which are large or differ in all lines end soon, and are shown within bounds.
func TestCompare_bounds(t *testing.T) {
	list := func(format string, n int) string {
		out := strings.Builder{}
		for i := range n {
			fmt.Fprintf(&out, format, i)
		}
		return out.String()
	}
	begun := time.Now()
	c := compare(list("a%d\n", 15_000), list("b%d\n", 15_000))
	if !c.Rough || len(c.Rows) > mostRows || c.Left == 0 || c.Removed != 15_000 || c.Added != 15_000 {
		t.Errorf("different texts: %d rows, %d left, rough %v", len(c.Rows), c.Left, c.Rough)
	}
	if c := compare(strings.Repeat("a", 300<<10), "b"); !c.TooLarge {
		t.Error("a text of 300 KiB is compared")
	}
	if c := compare(strings.Repeat("\n", 25_000), "b"); !c.TooLarge {
		t.Error("25 000 lines are compared")
	}
	c = compare(strings.Repeat("a", 200<<10), strings.Repeat("b", 200<<10))
	if len(c.Rows) != 2 || len(c.Rows[0].Text) > 2*mostLine {
		t.Errorf("two long lines: %d rows", len(c.Rows))
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("that took %s", took)
	}
}

func TestCompare(t *testing.T) {
	c := compare("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nE\nf\ng\nh\n")
	var rows []string
	for _, r := range c.Rows {
		if r.Class == "gap" {
			r.Text = "…"
		}
		rows = append(rows, r.Sign+r.Text)
	}
	if got := strings.Join(rows, " "); got != "… b c d -e +E f g h" {
		t.Errorf("got %q", got)
	}
	if c.Rows[1].Old != 2 || c.Rows[4].Old != 5 || c.Rows[4].New != 0 || c.Rows[5].New != 5 {
		t.Errorf("the numbers of the lines are %v", c.Rows)
	}
	c = compare("a\n", "a")
	if c.Removed != 1 || c.Added != 1 || c.Rows[1].Text != "a (no line feed at the end)" {
		t.Errorf("without the last line feed: %v", c.Rows)
	}
	if c = compare("a\n", "a\r\n"); !c.Endings || c.Rows[1].Text != `a\r` {
		t.Errorf("another line end: %v", c)
	}
	if c = compare("a\x1b", "a\u202e"); c.Rows[0].Text != `a\x1b (no line feed at the end)` {
		t.Errorf("control characters: %v", c.Rows)
	}
	if c = compare("same", "same"); !c.Same {
		t.Error("the same text differs")
	}
}
