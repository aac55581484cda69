package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// operatorRules are the alerts that the operator's chart has beside those of contrib/monitoring.
func operatorRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "charts", "quorate-operator", "files", "operator-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, faults := rulefmt.Parse(append([]byte("groups:\n"), text...), false, model.UTF8Validation,
		parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var rules []rule
	for _, group := range groups.Groups {
		for _, r := range group.Rules {
			rules = append(rules, rule{r.Alert, r.Expr})
		}
	}
	return rules
}

// Ensure that each alert of the operator is true of the cluster that it is about, once where two replicas tell of it, and of no
// other one.
func TestOperatorRules(t *testing.T) {
	s := newSeries()
	tell := func(name, cluster, condition string, value float64) {
		for _, pod := range []string{"operator-a", "operator-b"} {
			all := []string{"__name__", name, "namespace", "prod", "name", cluster, "pod", pod}
			if condition != "" {
				all = append(all, "condition", condition)
			}
			s.add(value, labels.FromStrings(all...))
		}
	}
	for cluster, values := range map[string][3]float64{"well": {1, 1, 0}, "gone": {0, 0, 1}, "sick": {1, 0, 1}} {
		for i, condition := range []string{"Available", "Healthy", "Progressing"} {
			tell("quorate_operator_cluster_condition", cluster, condition, values[i])
		}
		tell("quorate_operator_cluster_members_wanted", cluster, "", 3)
	}
	trueOf := func(expression string) (names []string) {
		for _, sample := range s.ask(t, expression) {
			names = append(names, sample.Metric.Get("name"))
		}
		slices.Sort(names)
		return names
	}
	want := map[string][]string{"QuorateClusterUnavailable": {"gone"}, "QuorateClusterUnhealthy": {"sick"},
		"QuorateClusterWaits": {"gone", "sick"}, "QuorateOperatorAbsent": nil}
	rules := operatorRules(t)
	if len(rules) != len(want) {
		t.Fatalf("%d alerts, want %d", len(rules), len(want))
	}
	for _, r := range rules {
		if got := trueOf(r.expression); !slices.Equal(got, want[r.name]) {
			t.Errorf("%s is true of %q, want %q", r.name, got, want[r.name])
		}
	}
	s.now = s.now.Add(16 * time.Minute)
	for _, r := range rules {
		if got := len(trueOf(r.expression)); got != 0 != (r.name == "QuorateOperatorAbsent") {
			t.Errorf("after all replicas were silent for 16 minutes %s is true %d times", r.name, got)
		}
	}
}
