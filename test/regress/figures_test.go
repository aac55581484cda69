package main

import (
	"strings"
	"testing"
)

// Ensure that the least of the runs counts, and nothing that nobody asked for.
func TestSuite_parse(t *testing.T) {
	s := suite{name: "call", counts: []string{"allocs/op"}, loose: []string{"writes/op"}, shown: []string{"cpu-us/op"}}
	got, err := s.parse(`goos: linux
BenchmarkCall/put-2    500   337706 ns/op   247.3 cpu-us/op   2.140 writes/op   7957 B/op   101 allocs/op
BenchmarkCall/put-2    500   217182 ns/op   154.8 cpu-us/op   2.144 writes/op   8127 B/op    99 allocs/op
BenchmarkCall/a_b,-2   500   217182 ns/op                                       8127 B/op     7 allocs/op
PASS
`)
	want := []figure{
		{"call/put/cpu-us.op", 154.8, 0}, {"call/put/writes.op", 2.14, looseTolerance}, {"call/put/allocs.op", 99, tolerance},
		{"call/a_b,/allocs.op", 7, tolerance},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	if got, err := (&suite{name: "wal", counts: []string{"B/op"}}).parse("BenchmarkWAL-2 10 3 ns/op 12 B/op"); err != nil ||
		len(got) != 1 || got[0].name != "wal/B.op" {
		t.Errorf("without parts: %v, %v", got, err)
	}
}

// Ensure that the run fails for what is worse, new or missing, and for nothing else.
func TestCompare(t *testing.T) {
	committed := []figure{{"a", 100, 0.03}, {"b", 100, 0.03}, {"c", 100, 0.10}, {"d", 100, 0.03}, {"zero", 0, 0.03}, {"gone", 1, 0.03}}
	measured := []figure{{"a", 102.9, 0.03}, {"b", 104, 0.03}, {"c", 109, 0.10}, {"d", 90, 0.03}, {"zero", 0, 0.03}, {"new", 1, 0.03},
		{"shown", 1e6, 0}}
	want := map[string]string{"a": "", "b": "WORSE", "c": "", "d": "better", "zero": "", "new": "NOT COMMITTED",
		"shown": "shown only", "gone": "NOT COUNTED"}
	verdicts := compare(committed, measured, true)
	if len(verdicts) != len(want) {
		t.Fatalf("%d verdicts", len(verdicts))
	}
	for i := range verdicts {
		v := &verdicts[i]
		remark := v.remark()
		if fails := remark != "" && strings.ToUpper(remark) == remark; remark != want[v.name()] || v.fails() != fails {
			t.Errorf("%s: %q, fails: %v", v.name(), v.remark(), v.fails())
		}
	}
	err := summarize(verdicts)
	if err == nil || !strings.Contains(err.Error(), "not counted: b, new, gone;") {
		t.Errorf("got %v", err)
	}
	if err := summarize(compare(committed[:1], measured[:1], false)); err != nil {
		t.Error(err)
	}
}

// Ensure that the file is read as it is written, keeps tolerances, and that a damaged one is refused with its line.
func TestFigures(t *testing.T) {
	measured := []figure{{"call/put/allocs.op", 101, 0.03}, {"call/put/B.op", 7957.4, 0.03}, {"x", 2.0784, 0.1}, {"shown", 3, 0}}
	text := formatFigures(measured, []figure{{"x", 7, 0.25}})
	got, err := parseFigures(text)
	want := []figure{{"call/put/allocs.op", 101, 0.03}, {"call/put/B.op", 7957, 0.03}, {"x", 2.078, 0.25}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v, %v of\n%s", got, err, text)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
	for _, bad := range []string{"a 1", "a 1 3", "a x 3%", "a 1 0%", "a -1 3%", "a 1 3%\na 1 3%"} {
		if _, err := parseFigures("# head\n" + bad); err == nil || !strings.Contains(err.Error(), figuresFile+":") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
