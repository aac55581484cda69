package ctl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/ctl/command"
)

const unknownCell = "-"

// report prints what was measured: a table, the reasons for its gaps, and the round trips between the members.
func (l *latencyCheck) report(rows []latencyRow, note string) error {
	out := l.Streams.Out
	if l.JSON() {
		return command.PrintJSON(out, rows)
	}
	t := &command.Table{}
	t.Add("MEMBER", "ROLE", "PUT-P50", "PUT-P90", "PUT-MAX", "GET-P50", "GET-P90", "GET-MAX", "PUTS-ANSWERED-BY")
	var notes []string
	for _, r := range rows {
		cells := []string{r.Name, r.Role}
		cells = append(append(cells, r.Put.cells()...), r.Get.cells()...)
		t.Add(append(cells, r.routes())...)
		switch {
		case r.Skipped != "":
			notes = append(notes, r.Name+" was skipped: "+r.Skipped)
		case r.Err != "":
			notes = append(notes, r.Name+" failed at "+r.Err)
		}
	}
	t.Print(out)
	if note != "" {
		notes = append(notes, note)
	}
	for _, n := range notes {
		fmt.Fprintln(out, n)
	}
	if trips := tripTable(rows); trips != nil {
		fmt.Fprintln(out, "\nround trips between the members, from each line's member to the column's:")
		trips.Print(out)
	}
	return nil
}

func (s *spread) cells() []string {
	if s == nil {
		return []string{unknownCell, unknownCell, unknownCell}
	}
	return []string{millisText(s.P50), millisText(s.P90), millisText(s.Max)}
}

// routes counts the puts by how they were answered, the most frequent first.
func (r *latencyRow) routes() string {
	names := slices.SortedFunc(maps.Keys(r.Routes), func(a, b string) int {
		if r.Routes[a] != r.Routes[b] {
			return r.Routes[b] - r.Routes[a]
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, name+" "+strconv.Itoa(r.Routes[name]))
	}
	if len(parts) == 0 {
		return unknownCell
	}
	return strings.Join(parts, ", ")
}

// millisText writes milliseconds with about three digits.
func millisText(ms float64) string {
	digits := 0
	switch {
	case ms < 10:
		digits = 2
	case ms < 100:
		digits = 1
	}
	return strconv.FormatFloat(ms, 'f', digits, 64) + " ms"
}
