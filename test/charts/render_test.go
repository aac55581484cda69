package charts_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/charts/helmtest"
)

// layers are the files of values of one set: the takeover lies over a release of the former chart.
func layers(path string) []string {
	if strings.Contains(path, "takeover") {
		return []string{path, filepath.Join(chartDir, "values-takeover.yaml")}
	}
	return []string{path}
}

func TestRender(t *testing.T) {
	for _, path := range helmtest.Sets(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			r, err := newCluster(t).install("db", valuesFrom(t, layers(path)...))
			if err != nil {
				t.Fatal(err)
			}
			got := allOf(r)
			for _, object := range objectsOf(t, got) {
				checkObject(t, object)
			}
			// The alerts and the dashboard are files of their own: TestAlerts looks at them.
			helmtest.CompareRender(t, path, shorten(got)+helmtest.Notes(r))
		})
	}
}

// shorten leaves out what the chart takes from contrib/monitoring as it is.
func shorten(text string) string {
	for _, cut := range []struct{ from, to string }{
		{"  # Alerts on a Quorate cluster", "\n---\n"}, {"  quorate.json: |-\n", "\n---\n"},
	} {
		at := strings.Index(text, cut.from)
		if at < 0 {
			continue
		}
		end := strings.Index(text[at:], cut.to)
		if end < 0 {
			end = len(text) - at
		}
		text = text[:at] + "  # as in contrib/monitoring" + text[at+end:]
	}
	return text
}

// foreign are the kinds of which Kubernetes has no type.
var foreign = map[string]bool{"Certificate": true, "Issuer": true, "ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true}

// checkObject wants an object to be one of Kubernetes' own type, in the namespace of the release.
func checkObject(t *testing.T, object map[string]any) {
	t.Helper()
	if foreign[object["kind"].(string)] {
		return
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := helmtest.Strict(string(text)); err != nil {
		t.Errorf("%v %s: %v", object["kind"], nameOf(object), err)
	}
	if ns := object["metadata"].(map[string]any)["namespace"]; ns != namespace {
		t.Errorf("%v %s is in the namespace %v", object["kind"], nameOf(object), ns)
	}
}

func TestLint(t *testing.T) {
	for _, path := range append(helmtest.Sets(t), "") {
		values := map[string]any{}
		if path != "" {
			values = valuesFrom(t, layers(path)...)
		}
		helmtest.Lint(t, chartDir, namespace, path, values)
	}
}

// Ensure that the alerts that a release has are those of contrib/monitoring, and that the job of its ServiceMonitor is one that they
// ask for.
func TestAlerts(t *testing.T) {
	c := newCluster(t)
	r := c.mustInstall("db", "metrics: {enabled: true, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, "+
		"dashboard: {enabled: true}}\nnameOverride: store")
	want := helmtest.Values(t, helmtest.Read(t, "../../contrib/monitoring/alerts.yaml"))["groups"].([]any)
	got := c.objects["PrometheusRule/db-store"]["spec"].(map[string]any)["groups"].([]any)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) < 2 {
		t.Errorf("got the groups %v, want %v", got, want)
	}
	dashboard := helmtest.Read(t, "../../contrib/monitoring/dashboard.json")
	shown := c.objects["ConfigMap/db-store-dashboard"]["data"].(map[string]any)["quorate.json"].(string)
	if strings.TrimSpace(shown) != strings.TrimSpace(dashboard) {
		t.Error("the dashboard differs from that of contrib/monitoring")
	}
	if !strings.Contains(r.Manifest, "{targetLabel: job, replacement: quorate/prod/db-store}") {
		t.Error("the job of the ServiceMonitor is not one of the alerts")
	}
}
