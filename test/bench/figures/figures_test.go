package figures

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	unknown := math.NaN()
	for _, row := range []struct {
		name   string
		values []float64
		want   float64
	}{
		{"nothing", nil, unknown},
		{"nothing known", []float64{unknown}, unknown},
		{"odd", []float64{9, 1, 5}, 5},
		{"even", []float64{4, 1, 2, 9}, 3},
		{"unknown ones are left out", []float64{unknown, 7, 1, unknown, 8}, 7},
	} {
		if got := Median(row.values); got != row.want && !(math.IsNaN(got) && math.IsNaN(row.want)) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func sample(workload, server string, round int, rate float64) Row {
	f := NewRow(workload)
	f.Server, f.Round = server, round
	f.Set(PerSecond, rate)
	return f
}

// A ratio pairs the two servers of one round, in whatever order they ran.
func TestRatios(t *testing.T) {
	all := []Row{
		sample("put", "etcd", 0, 100), sample("put", "quorate", 0, 150),
		sample("put", "quorate", 1, 100), sample("put", "etcd", 1, 50),
		sample("put", "etcd", 2, 0), sample("put", "quorate", 2, 10), // nothing to divide by
		sample("put", "etcd", 3, 10), // no partner
		sample("put", "etcd", 4, 200), sample("put", "quorate", 4, 100),
		sample("range", "etcd", 0, 1), sample("range", "quorate", 0, 99),
	}
	got := Ratios(all, "put", "etcd", "quorate", PerSecond)
	if want := []float64{1.5, 2, 0.5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Ratios(all, "put", "etcd", "quorate", ResidentMiB); len(got) != 0 {
		t.Errorf("of what was not measured: got %v, want none", got)
	}
	var text strings.Builder
	if err := Report(&text, []string{"etcd", "quorate"}, all); err != nil {
		t.Fatal(err)
	}
	if want := "1.50 (1.50 2.00 0.50)"; !strings.Contains(text.String(), want) {
		t.Errorf("report lacks %q:\n%s", want, text.String())
	}
}

// Ensure that every column has a heading of its own, and says what it means.
func TestColumns(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if k.String() == "" || k.About() == "" || seen[k.String()] {
			t.Errorf("column %d: heading %q, which another one has: %t; about %q", k, k, seen[k.String()], k.About())
		}
		seen[k.String()] = true
	}
}

// Notes stand behind the figures, each once, and machines get what was measured and no more.
func TestReport_notes(t *testing.T) {
	first, second := sample("put", "a", 0, 100), sample("put", "a", 1, 300)
	first.Note, second.Note = "not ready 3", "not ready 3"
	var text, record strings.Builder
	if err := Report(&text, []string{"a"}, []Row{first, second}); err != nil {
		t.Fatal(err)
	}
	if want := " a   200  not ready 3\n"; !strings.HasSuffix(text.String(), want) {
		t.Errorf("the report does not end with %q:\n%s", want, text.String())
	}
	if err := (&Record{Rows: []Row{second}}).Write(&record); err != nil {
		t.Fatal(err)
	}
	want := `{"workload":"put","server":"a","round":1,"figures":{"op/s":300},"note":"not ready 3"}`
	if got := strings.Join(strings.Fields(record.String()), ""); !strings.Contains(got, strings.ReplaceAll(want, " ", "")) {
		t.Errorf("got %s, want %s", got, want)
	}
}
