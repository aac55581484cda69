package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/base/printable"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/ranking"
)

// lines are the table for people, with so many rows at most.
func lines(s *summary, v *view, rows int) []string {
	out := []string{headline(s, v), ""}
	t := &table{right: 5}
	if v.Clients {
		t.add("OPS/S", "BYTES/S", "CPU", "SHARE", "WATCHERS", "USER", "HOST")
	} else {
		t.add("OPS/S", "BYTES/S", "CPU", "SHARE", "WATCHERS", "OPERATION", "PREFIX")
	}
	shown := s.Rows[:min(rows, len(s.Rows))]
	for i := range shown {
		t.add(cells(&shown[i], v)...)
	}
	out = append(out, t.lines()...)
	if len(shown) == 0 {
		out = append(out, "nothing was counted")
	}
	out = append(out, "")
	out = append(out, footnotes(s, v, rows)...)
	for i := range s.missing {
		out = append(out, fmt.Sprintf("%s is not counted: %s", plain(s.missing[i].name), printable.Text(s.missing[i].reason(),
			mostSentence)))
	}
	return out
}

func headline(s *summary, v *view) string {
	return fmt.Sprintf("%d of %s, the last %v, by %s: %s ops/s, %s/s, %s CPU, %s %s", len(s.answered),
		plural.Of(len(s.answered)+len(s.missing), "member"), s.Covers.Round(time.Second/10), v.By, number(s.Total.Operations),
		size(s.Total.Bytes),
		percent(s.Total.Processors), whole(s.Total.Watchers), plural.Word(int64(min(s.Total.Watchers, 1<<60)+0.5), "watcher"))
}

func cells(r *ranking.Row, v *view) []string {
	all := []string{number(r.Operations), size(r.Bytes), percent(r.Processors), percent(r.Share), whole(r.Watchers)}
	if r.Watchers == 0 {
		all[4] = "-"
	}
	if v.Clients {
		return append(all, dash(r.User), dash(r.Host))
	}
	return append(all, plain(r.Operation), quoted(r.Prefix))
}

// footnotes say how far the numbers may be wrong.
func footnotes(s *summary, v *view, rows int) []string {
	var out []string
	if s.OneOf > 1 {
		out = append(out, fmt.Sprintf("Of %d small calls one is counted, as %[1]d; of large ones each: %s.", s.OneOf,
			sampleError(s)))
	}
	if s.Watchers > 1 {
		out = append(out, fmt.Sprintf("Of %d watchers one is counted, as %[1]d.", s.Watchers))
	}
	if left, most := s.Beyond(v.View, rows); left > 0 {
		out = append(out, fmt.Sprintf("%d more rows; each has at most %s, and so has what is in none.", left, v.amount(most)))
	} else if most > 0 {
		out = append(out, fmt.Sprintf("What is in no row has at most %s each.", v.amount(most)))
	}
	return out
}

// sampleError says by how much the first row may be wrong since it is a sample: twice the standard deviation.
func sampleError(s *summary) string {
	if len(s.Rows) == 0 || s.Rows[0].Operations == 0 {
		return "few calls are none"
	}
	samples := s.Rows[0].Operations * s.Covers.Seconds() / float64(s.OneOf)
	return fmt.Sprintf("the first row is right within %.0f %%, mostly", min(100, math.Ceil(200/math.Sqrt(max(samples, 1)))))
}

// amount writes a number of what rows are ranked by.
func (v *view) amount(n float64) string {
	switch v.By {
	case ranking.ByBytes:
		return size(n) + "/s"
	case ranking.ByProcessor:
		return percent(n) + " CPU"
	case ranking.ByWatchers:
		return whole(n) + " watchers"
	}
	return number(n) + " ops/s"
}

// number writes a number in at most six characters.
func number(n float64) string {
	switch {
	case n < 9.95 && n > 0:
		return strconv.FormatFloat(n, 'f', 1, 64)
	case n < 9999.5:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	for _, unit := range []string{"k", "M", "G"} {
		if n /= 1000; n < 999.95 {
			return strconv.FormatFloat(n, 'f', 1, 64) + unit
		}
	}
	return strconv.FormatFloat(n/1000, 'f', 1, 64) + "T"
}

// whole writes a number of things that are not in parts.
func whole(n float64) string {
	if n < 9999.5 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return number(n)
}

func size(n float64) string { return progress.Size(int64(min(n, 1<<60))) }

// percent writes a part of one: of all, or of a processor.
func percent(n float64) string {
	switch n *= 100; {
	case n > 0 && n < 0.1:
		return "<0.1 %"
	case n > 0 && n < 9.95:
		return strconv.FormatFloat(n, 'f', 1, 64) + " %"
	}
	return number(math.Round(n)) + " %"
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return plain(text)
}

// quoted writes a prefix. It is quoted if it is not plain.
func quoted(prefix string) string {
	if prefix == "" {
		return `""`
	}
	return plain(prefix)
}

// plain is a name as it is, or quoted if a terminal would not show it so, or a reader could not tell where it ends.
func plain(name string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || r == '"' || r == ' ' || !unicode.IsPrint(r) }
	if strings.ContainsFunc(name, odd) {
		return strconv.Quote(name)
	}
	return name
}

// mostSentence bounds why a member does not answer, in characters.
const mostSentence = 400

// table has columns of numbers, which are aligned on the right, and others behind them.
type table struct {
	right int
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) lines() []string {
	widths := make([]int, t.right)
	for _, row := range t.rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	rest := &command.Table{}
	for _, row := range t.rows {
		for i, width := range widths {
			row[i] = strings.Repeat(" ", width-utf8.RuneCountInString(row[i])) + row[i]
		}
		rest.Add(row...)
	}
	return rest.Lines()
}
