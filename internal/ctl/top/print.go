package top

import (
	"fmt"
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
	out = append(out, s.Notes(v.View, rows, size)...)
	for i := range s.missing {
		out = append(out, fmt.Sprintf("%s is not counted: %s", plain(s.missing[i].name), printable.Text(s.missing[i].reason(),
			mostSentence)))
	}
	return out
}

func headline(s *summary, v *view) string {
	return fmt.Sprintf("%d of %s, the last %v, by %s: %s ops/s, %s/s, %s CPU, %s %s", len(s.answered),
		plural.Of(len(s.answered)+len(s.missing), "member"), s.Covers.Round(time.Second/10), v.By,
		ranking.Number(s.Total.Operations),
		size(s.Total.Bytes),
		ranking.Percent(s.Total.Processors), ranking.Whole(s.Total.Watchers),
		plural.Word(int64(min(s.Total.Watchers, 1<<60)+0.5), "watcher"))
}

func cells(r *ranking.Row, v *view) []string {
	all := []string{ranking.Number(r.Operations), size(r.Bytes), ranking.Percent(r.Processors), ranking.Percent(r.Share),
		ranking.Whole(r.Watchers)}
	if r.Watchers == 0 {
		all[4] = "-"
	}
	if v.Clients {
		return append(all, dash(r.User), dash(r.Host))
	}
	return append(all, plain(r.Operation), quoted(r.Prefix))
}

func size(n float64) string { return progress.Size(int64(min(n, 1<<60))) }

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
