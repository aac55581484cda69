package operator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/charts/helmtest"
)

const monitored = `
watchNamespaces: [prod, test]
metrics: {serviceMonitor: {enabled: true}, members: {podMonitor: {enabled: true}}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}
`

// manifestOf is the object of a kind in the render of a release; nil if it has none.
func manifestOf(t *testing.T, values, kind string) map[string]any {
	t.Helper()
	r, err := install(t, newCluster(t), values)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split(r.Manifest, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if object["kind"] == kind {
			return object
		}
	}
	return nil
}

// Ensure that the alerts and the dashboard of members are those of contrib/monitoring, that the job of the PodMonitor is one that
// they ask for, and that nothing of this is there by default.
func TestAlerts_members(t *testing.T) {
	var want map[string]any
	if err := yaml.Unmarshal([]byte(helmtest.Read(t, "../../../contrib/monitoring/alerts.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	members := want["groups"].([]any)
	got := manifestOf(t, monitored, "PrometheusRule")["spec"].(map[string]any)["groups"].([]any)
	if len(got) != len(members)+1 || fmt.Sprint(got[:len(members)]) != fmt.Sprint(members) {
		t.Errorf("got %d groups, want those of contrib/monitoring and one more", len(got))
	}
	dashboard := manifestOf(t, monitored, "ConfigMap")["data"].(map[string]any)["quorate.json"].(string)
	if strings.TrimSpace(dashboard) != strings.TrimSpace(helmtest.Read(t, "../../../contrib/monitoring/dashboard.json")) {
		t.Error("the dashboard differs from that of contrib/monitoring")
	}
	monitor := fmt.Sprint(manifestOf(t, monitored, "PodMonitor")["spec"])
	for _, part := range []string{"matchNames:[prod test]", "quorate.io/purpose:member", "port:metrics", "replacement:quorate/$1",
		"[__meta_kubernetes_namespace __meta_kubernetes_pod_label_quorate_io_cluster]"} {
		if !strings.Contains(monitor, part) {
			t.Errorf("the PodMonitor has no %s: %s", part, monitor)
		}
	}
	for _, kind := range []string{"PrometheusRule", "PodMonitor", "ConfigMap", "ServiceMonitor"} {
		if object := manifestOf(t, "", kind); object != nil {
			t.Errorf("by default: %v", object)
		}
	}
}

// Ensure that the alerts of the operator ask for gauges that it has.
func TestAlerts_operator(t *testing.T) {
	groups := manifestOf(t, monitored, "PrometheusRule")["spec"].(map[string]any)["groups"].([]any)
	rules := groups[len(groups)-1].(map[string]any)["rules"].([]any)
	known := helmtest.Read(t, "../../../operator/internal/controller/gauges.go")
	var asked []string
	for _, one := range rules {
		rule := one.(map[string]any)
		asked = append(asked, regexp.MustCompile(`quorate_operator_\w+`).FindAllString(rule["expr"].(string), -1)...)
		if rule["annotations"].(map[string]any)["description"] == "" || rule["labels"].(map[string]any)["severity"] == "" {
			t.Errorf("%v says neither how grave it is nor what to do", rule["alert"])
		}
	}
	for _, name := range asked {
		if !strings.Contains(known, `"`+name+`"`) {
			t.Errorf("no gauge is named %s", name)
		}
	}
	if slices.Sort(asked); len(slices.Compact(asked)) < 2 || len(rules) < 4 {
		t.Errorf("%d alerts ask for %v", len(rules), asked)
	}
}
