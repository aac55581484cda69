package charts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// layers are the files of values of one set: the takeover lies over a release of the former chart.
func layers(path string) []string {
	if strings.Contains(path, "takeover") {
		return []string{path, filepath.Join(chartDir, "values-takeover.yaml")}
	}
	return []string{path}
}

func TestRender(t *testing.T) {
	for _, path := range sets(t) {
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
			got = fmt.Sprintf("%s---\n# NOTES.txt\n# %s\n", shorten(got), strings.ReplaceAll(strings.TrimSpace(r.Info.Notes), "\n", "\n# "))
			golden := strings.TrimSuffix(path, ".values.yaml") + ".golden.yaml"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the render differs from %s; look at the difference, then: go test -run TestRender -rewrite\n%s", golden,
					firstDifference(got, string(want)))
			}
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

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i+1, a[i], append(b, "the end")[min(i, len(b))])
		}
	}
	return "the end is missing"
}

// foreign are the kinds of which Kubernetes has no type.
var foreign = map[string]bool{"Certificate": true, "Issuer": true, "ServiceMonitor": true, "PodMonitor": true, "PrometheusRule": true}

// checkObject decodes an object into Kubernetes' own type, which refuses fields that it does not have, twice the same field, and
// values of other types.
func checkObject(t *testing.T, object map[string]any) {
	t.Helper()
	if foreign[object["kind"].(string)] {
		return
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := strict.Decode(text, nil, nil); err != nil {
		t.Errorf("%v %s: %v", object["kind"], nameOf(object), err)
	}
	if ns := object["metadata"].(map[string]any)["namespace"]; ns != namespace {
		t.Errorf("%v %s is in the namespace %v", object["kind"], nameOf(object), ns)
	}
}

func TestLint(t *testing.T) {
	for _, path := range append(sets(t), "") {
		values := map[string]any{}
		if path != "" {
			values = valuesFrom(t, layers(path)...)
		}
		for _, m := range lint.RunAll(chartDir, values, namespace).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", path, m)
			}
		}
	}
}

// Ensure that the alerts that a release has are those of contrib/monitoring, and that the job of its ServiceMonitor is one that they
// ask for.
func TestAlerts(t *testing.T) {
	c := newCluster(t)
	r := c.mustInstall("db", "metrics: {enabled: true, serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}, "+
		"dashboard: {enabled: true}}\nnameOverride: store")
	alerts, err := os.ReadFile("../../contrib/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := valuesOf(t, string(alerts))["groups"].([]any)
	got := c.objects["PrometheusRule/db-store"]["spec"].(map[string]any)["groups"].([]any)
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) < 2 {
		t.Errorf("got the groups %v, want %v", got, want)
	}
	dashboard, err := os.ReadFile("../../contrib/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	shown := c.objects["ConfigMap/db-store-dashboard"]["data"].(map[string]any)["quorate.json"].(string)
	if strings.TrimSpace(shown) != strings.TrimSpace(string(dashboard)) {
		t.Error("the dashboard differs from that of contrib/monitoring")
	}
	if !strings.Contains(r.Manifest, "{targetLabel: job, replacement: quorate/prod/db-store}") {
		t.Error("the job of the ServiceMonitor is not one of the alerts")
	}
}
