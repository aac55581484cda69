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
