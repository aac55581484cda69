package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// job is the label of the cluster: etcd's rules look for a job with "etcd" in its name, ours for either name.
const job = "etcd"

// rule is an alert, or a line of a dashboard: without a name.
type rule struct{ name, expression string }

// ourRules are the alerts of contrib/monitoring.
func ourRules(t *testing.T) []rule {
	t.Helper()
	groups, faults := rulefmt.ParseFile(filepath.Join("..", "..", "..", "contrib", "monitoring", "alerts.yaml"), false,
		model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var rules []rule
	for _, group := range groups.Groups {
		for _, r := range group.Rules {
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s has no summary, description or severity", r.Alert)
			}
			rules = append(rules, rule{r.Alert, r.Expr})
		}
	}
	return rules
}

// ourDashboard are the queries of contrib/monitoring.
func ourDashboard(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "contrib", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			rules = append(rules, rule{"", fill(target.Expr)})
		}
	}
	return rules
}

// fill puts values in the place of a dashboard's variables.
func fill(expression string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", job, "$cluster", job).Replace(expression)
}

// mixin returns a file of etcd's mixin.
func mixin(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", "go.etcd.io/etcd/v3@v3.7.1").Output()
	if err != nil {
		t.Fatalf("etcd's module: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "contrib", "mixin", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	mixinAlert  = regexp.MustCompile(`(?s)alert: '(\w+)',\s*expr: \|\|\|\n(.*?)\|\|\|`)
	mixinTarget = regexp.MustCompile(`'([^'\n]*)'\s*% (?:\[|config)`)
	mixinValues = strings.NewReplacer("%(etcd_selector)s", `job=~".*etcd.*"`, "%(etcd_instance_labels)s", "instance",
		"%(network_failure_range)s", "120", "%(clusterLabel)s", "job", "%%", "%")
)

// etcdRules are the alerts of etcd's mixin, with its own settings.
func etcdRules(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	for _, found := range mixinAlert.FindAllStringSubmatch(mixin(t, "alerts/alerts.libsonnet"), -1) {
		rules = append(rules, rule{found[1], mixinValues.Replace(found[2])})
	}
	if len(rules) < 14 {
		t.Fatalf("found %d alerts in etcd's mixin", len(rules))
	}
	return rules
}

// etcdDashboard are the queries of its dashboard.
func etcdDashboard(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	for _, found := range mixinTarget.FindAllStringSubmatch(mixin(t, "dashboards/targets.libsonnet"), -1) {
		expression := mixinValues.Replace(found[1])
		for _, value := range []string{`job=~".*etcd.*"`, "job"} {
			expression = strings.Replace(expression, "%s", value, 1)
		}
		rules = append(rules, rule{"", fill(expression)})
	}
	if len(rules) < 15 {
		t.Fatalf("found %d queries in etcd's dashboard", len(rules))
	}
	return rules
}
