package members

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/operator/internal/decide"
)

// Ensure that a page of metrics is read whatever else is there, and that one which lacks something, or tells nonsense, tells nothing.
func TestGaugeOf(t *testing.T) {
	page := `# HELP etcd_server_id 1 for this member's id.
etcd_server_id{server_id="44d7f52f9631df6"} 1
etcd_server_proposals_applied_total 626
other_metric{a="b c"} 7
etcd_debugging_mvcc_current_revision 615
`
	got := gaugeOf(&Seat{Member: "m1"}, strings.NewReader(page))
	if got == nil || *got != (Gauge{Member: "m1", ID: "44d7f52f9631df6", Index: 626, Revision: 615}) {
		t.Fatalf("of a build that does not tell the end of its log: %+v", got)
	}
	end := "quorate_raft_last_index 640\nquorate_raft_last_term 7\nquorate_epoch 2\n"
	if got := gaugeOf(&Seat{Member: "m1"}, strings.NewReader(end+page)); got == nil || got.Index != 640 || got.Term != 7 || got.Epoch != 2 {
		t.Errorf("the end of the log: %+v", got)
	}
	seat := &Seat{Member: "m1", Epoch: decide.ParseEpoch("3-ab")}
	if got := gaugeOf(seat, strings.NewReader(page)); got == nil || got.Epoch != 3 {
		t.Errorf("a build that tells no epoch: %+v", got)
	}
	if got := gaugeOf(seat, strings.NewReader(end+page)); got == nil || got.Epoch != 2 {
		t.Errorf("a build that tells its epoch: %+v", got)
	}
	for _, bad := range []string{"", strings.Replace(page, "615", "-1", 1), strings.Replace(page, "615", "NaN", 1),
		strings.Replace(page, "626", "x", 1), strings.Replace(page, "etcd_server_id{", "x{", 1), strings.Repeat("x", 1<<20)} {
		if got := gaugeOf(&Seat{Member: "m1"}, strings.NewReader(bad)); got != nil {
			t.Errorf("%.40q: %+v", bad, got)
		}
	}
}
