package dev

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/ctl/screen"
	"github.com/quorate/quorate/internal/ctl/survey"
)

// display shows what happens: lines that stay, and on a terminal a table below them that is drawn anew in place.
type display struct {
	screen   screen.Screen
	terminal bool
	seen     []survey.Member
}

// show presents a survey: as a table on a terminal, else as the changes since the last one.
func (d *display) show(members []survey.Member, pids []int) {
	if d.terminal {
		d.screen.Draw(tableLines(members, pids))
	} else {
		for _, line := range changes(d.seen, members) {
			d.screen.Say("%s", line)
		}
	}
	d.seen = members
}

var columns = []string{"MEMBER", "ROLE", "TERM", "INDEX", "APPLIED", "LAG", "REVISION", "SIZE", "PID"}

func tableLines(members []survey.Member, pids []int) []string {
	rows := [][]string{columns}
	for i, m := range members {
		pid := ""
		if pids[i] != 0 {
			pid = strconv.Itoa(pids[i])
		}
		row := []string{m.Name, string(m.Role), "", "", "", "", "", "", pid}
		if m.Role != survey.Down {
			row = []string{m.Name, string(m.Role), strconv.FormatUint(m.Term, 10), strconv.FormatUint(m.Index, 10),
				strconv.FormatUint(m.Applied, 10), strconv.FormatUint(m.Lag, 10),
				strconv.FormatInt(m.Revision, 10), size(m.Size), pid}
		}
		rows = append(rows, row)
	}
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var out []string
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < 2 {
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			} else {
				fmt.Fprintf(&line, "%*s  ", widths[i], cell)
			}
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

func size(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}

// changes tells in words how roles differ between two surveys.
func changes(before, after []survey.Member) []string {
	var out []string
	for i, m := range after {
		was := survey.Role("")
		if i < len(before) {
			was = before[i].Role
			if m.Role == survey.Leader && was == survey.Leader && m.Term != before[i].Term {
				out = append(out, fmt.Sprintf("%s leads again, in term %d", m.Name, m.Term))
			}
		}
		if m.Role == was {
			continue
		}
		switch m.Role {
		case survey.Down:
			if was != "" {
				out = append(out, m.Name+" does not answer")
			}
		case survey.Seeking:
			out = append(out, m.Name+" is up, without a leader")
		default:
			out = append(out, fmt.Sprintf("%s is %s in term %d, revision %d", m.Name, m.Role, m.Term, m.Revision))
		}
	}
	return out
}
