package main

import (
	"strings"
	"testing"
)

func of(name string, count, tolerance float64) figure {
	return figure{name: name, count: count, tolerance: tolerance}
}

// Ensure that the least of the runs counts, and that other output is ignored.
func TestSuite_parse(t *testing.T) {
	s := suite{name: "call", counts: []string{"allocs/op"}, loose: []string{"writes/op"}, shown: []string{"cpu-us/op"}}
	got, err := s.parse(`goos: linux
BenchmarkCall/put-2    500   337706 ns/op   247.3 cpu-us/op   2.140 writes/op   7957 B/op   101 allocs/op
BenchmarkCall/put-2    500   217182 ns/op   154.8 cpu-us/op   2.144 writes/op   8127 B/op    99 allocs/op
BenchmarkCall/a_b,-2   500   217182 ns/op                                       8127 B/op     7 allocs/op
PASS
`)
	want := []figure{
		of("call/put/cpu-us.op", 154.8, 0), of("call/put/writes.op", 2.14, looseTolerance),
		of("call/put/allocs.op", 99, tolerance), of("call/a_b,/allocs.op", 7, tolerance),
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

// Ensure that the run fails for counts that are worse, new or missing, and for no others.
func TestCompare(t *testing.T) {
	committed := []figure{of("a", 100, 0.03), of("b", 100, 0.03), of("c", 100, 0.10), of("d", 100, 0.03), of("zero", 0, 0.03),
		of("gone", 1, 0.03), of("noted", 100, 0.03), of("fewer", 100, 0.03)}
	measured := []figure{of("a", 102.9, 0.03), of("b", 104, 0.03), of("c", 109, 0.10), of("d", 90, 0.03), of("zero", 0, 0.03),
		of("new", 1, 0.03), of("shown", 1e6, 0), {"noted", 104, 0.03, true}, {"fewer", 96, 0.03, true}}
	want := map[string]string{"a": "", "b": "WORSE", "c": "", "d": "better", "zero": "", "new": "NOT COMMITTED",
		"shown": "shown only", "noted": "more", "fewer": "better", "gone": "NOT COUNTED"}
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
	measured := []figure{of("call/put/allocs.op", 101, 0.03), of("call/put/B.op", 7957.4, 0.03), of("x", 2.0784, 0.1),
		of("shown", 3, 0)}
	text := formatFigures(measured, []figure{of("x", 7, 0.25)})
	got, err := parseFigures(text)
	want := []figure{of("call/put/allocs.op", 101, 0.03), of("call/put/B.op", 7957, 0.03), of("x", 2.078, 0.25)}
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

// Ensure that the committed counts find a cost that grew once: a renewal of a lease had 31 allocations instead of 28.
func TestCompare_renewal(t *testing.T) {
	committed, err := readFigures("figures.txt")
	if err != nil {
		t.Fatal(err)
	}
	for count, fails := range map[float64]bool{28: false, 31: true} {
		now := []figure{of("call/keepalive/allocs.op", count, tolerance)}
		if verdicts := compare(committed, now, false); verdicts[0].fails() != fails {
			t.Errorf("%v allocations: %q", count, verdicts[0].remark())
		}
	}
}

// Ensure that only counts that hardly depend on the machine can fail a run.
func TestSuites_stable(t *testing.T) {
	for i := range suites {
		for _, unit := range []string{"ns/op", "B/op", "cpu-us/op", "cpu-us/put", "switches/op"} {
			f, counted := suites[i].figureOf("BenchmarkX-2", unit)
			if f.count = 100; !counted {
				continue
			}
			known := f
			known.count = 1
			if verdicts := compare([]figure{known}, []figure{f}, false); verdicts[0].fails() {
				t.Errorf("%s fails for its %s", suites[i].name, unit)
			}
		}
	}
}

// Ensure that a suite with a worse count is run again, that a disturbance of one run fails nothing, and that a cost of the code
// does.
func TestSuite_measure(t *testing.T) {
	committed := []figure{of("call/put/allocs.op", 28, 0.05)}
	for _, row := range []struct {
		counts []float64 // of the runs
		want   float64
		ran    int
		fails  bool
	}{
		{[]float64{28}, 28, 1, false},
		{[]float64{31, 28}, 28, 2, false},
		{[]float64{32, 31, 31}, 31, attempts, true},
	} {
		ran := 0
		got, err := (&suite{name: "call"}).measure(committed, func() ([]figure, error) {
			ran++
			return []figure{of("call/put/allocs.op", row.counts[ran-1], tolerance), of("call/put/new.op", 1, tolerance)}, nil
		})
		if err != nil || len(got) != 2 || got[0].count != row.want || ran != row.ran {
			t.Errorf("%v: got %v after %d runs, %v", row.counts, got, ran, err)
		}
		if verdicts := compare(committed, got[:1], true); verdicts[0].fails() != row.fails {
			t.Errorf("%v: %q", row.counts, verdicts[0].remark())
		}
	}
}
