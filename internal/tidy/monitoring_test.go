package tidy_test

import (
	"regexp"
	"strings"
	"testing"
)

// monitored are the files whose metrics must exist.
var monitored = []string{"contrib/monitoring/alerts.yaml", "contrib/monitoring/dashboard.json", "docs/monitoring.md"}

var metricName = regexp.MustCompile(`\b(?:quorate|etcd|grpc_server)_[a-z_]*[a-z]\b`)

// TestMonitoring requires that every metric that alerts, dashboards and their document name is one that the code shows. The
// tests in test/process/monitoring try what the expressions say of a running cluster.
func TestMonitoring(t *testing.T) { check(t, checkMonitored) }

func checkMonitored(r *tree) []string {
	var p report
	_, texts := symbols(r)
	for _, path := range monitored {
		for _, name := range metricName.FindAllString(r.read(path), -1) {
			base := strings.TrimSuffix(name, "_bucket")
			if !texts[name] && !texts[base] && !texts[strings.TrimPrefix(name, "quorate_")] {
				p.addf("%s: nothing shows the metric %s", path, name)
			}
		}
	}
	return p
}
