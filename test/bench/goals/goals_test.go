package goals

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/test/bench/figures"
)

func rowOf(workload, server string, round int, k figures.Kind, v float64) figures.Row {
	r := figures.NewRow(workload)
	r.Server, r.Round = server, round
	r.Set(k, v)
	r.Set(figures.OthersPercent, 3)
	return r
}

// A measured goal gets a verdict by its sense, and the report says of any other that it is missing.
func TestPrint(t *testing.T) {
	var out strings.Builder
	Print(&out, "etcd", "ours", 1_000_000, []Measured{
		{Name: "calls", Command: "go run . run", Rounds: 2, Rows: []figures.Row{
			rowOf("put c=64", "etcd", 0, figures.PerSecond, 100), rowOf("put c=64", "ours", 0, figures.PerSecond, 170),
			rowOf("put c=64", "ours", 1, figures.PerSecond, 200), rowOf("put c=64", "etcd", 1, figures.PerSecond, 100),
			rowOf("txn c=64", "etcd", 0, figures.ServerMicros, 100), rowOf("txn c=64", "ours", 0, figures.ServerMicros, 50),
		}},
		{Name: "life", Rounds: 1, Rows: []figures.Row{
			rowOf("256 B", "etcd", 0, figures.LowestSecond, 0.5), rowOf("256 B", "ours", 0, figures.LowestSecond, 0.8),
			rowOf("10240 B", "ours", 0, figures.LowestSecond, 0.95),
		}},
		{Name: "k8s", Rounds: 1, Rows: []figures.Row{rowOf("highest rate", "ours", 0, figures.Cancelled, 0)}},
	})
	for _, want := range []string{
		"| put, 64 clients: throughput | 100 | 185 | 1.85 (1.70 to 2.00) | 1.8 | met |",
		"| ... server CPU | 100 | 50.0 | 0.50 | 0.45 | **missed** |",
		"| put, 256 clients: throughput | - | - |  | 1.8 | not measured |",
		"slowest second beside the median one | 0.50 | 0.80 | 1.60 | 0.9 at least | **missed** |",
		"slowest second beside the median one | - | 0.95 |  | 0.9 at least | met |",
		"| ... watches cancelled | - | 0 |  | at most 0 | met |",
		"| calls | 2 | 3 to 3 % | `go run . run` |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "RangeStream") {
		t.Error("the table has a section that was not asked for")
	}
}
