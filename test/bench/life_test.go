package main

import (
	"math"
	"strings"
	"testing"
)

// Ensure that only the metrics that are asked for are read, and summed over members.
func TestCounts_add(t *testing.T) {
	got := counts{}
	for range 2 {
		got.add(strings.NewReader("# HELP quorate_wal_syncs_total Syncs.\nquorate_wal_syncs_total 3\n" +
			"quorate_wal_written_bytes_total{part=\"ahead\"} 1.5e+06\nquorate_wal_written_bytes_total{part=\"other\"} 7\nbroken\n"))
	}
	since := got.since(counts{"quorate_wal_syncs_total": 2})
	if len(since) != 2 || since["quorate_wal_syncs_total"] != 4 || since[`quorate_wal_written_bytes_total{part="ahead"}`] != 3e6 {
		t.Errorf("%v", since)
	}
}

// Ensure that the second that was not a whole one does not count as a slow one.
func TestSeconds_lowest(t *testing.T) {
	s := seconds{count: []int{100, 90, 100, 1}, marks: []int{1}}
	if got := s.lowest(); got != 0.9 {
		t.Errorf("the lowest second has %v of the median", got)
	}
	if text := s.String(); text != "100 90* 100" {
		t.Errorf("%q", text)
	}
	if got := (&seconds{count: []int{5}}).lowest(); !math.IsNaN(got) {
		t.Errorf("no whole second has %v", got)
	}
}
