package charts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/charts/helmtest"
)

// open are the objects of the schema that take any key, although some of theirs are named.
var open = []string{"global", "metrics.dashboard.labels"} // a chart above this one has keys of its own there; a map

// Ensure that a mistyped key is refused in each object of the values, and in the values themselves.
func TestValues_mistyped(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	tried := 0
	var walk func(object map[string]any, path []string)
	walk = func(object map[string]any, path []string) {
		properties, _ := object["properties"].(map[string]any)
		for name, of := range properties {
			walk(of.(map[string]any), append(slices.Clone(path), name))
		}
		if properties == nil || slices.Contains(open, strings.Join(path, ".")) {
			return
		}
		tried++
		values := map[string]any{"mistypd": 1}
		for _, name := range slices.Backward(path) {
			values = map[string]any{name: values}
		}
		if _, err := c.install("db", values); err == nil || !strings.Contains(err.Error(), "'mistypd' not allowed") {
			t.Errorf("%s.mistypd: got %v", strings.Join(path, "."), err)
		}
	}
	walk(schema, nil)
	if tried < 40 {
		t.Errorf("only %d objects were tried", tried)
	}
}

// Ensure that what Kubernetes takes in resources, security contexts and probes is taken.
func TestValues_kubernetes(t *testing.T) {
	newCluster(t).mustInstall("db", `
auth: {rbac: {create: false}}
resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}, limits: {cpu: "2", memory: 2Gi}}
podSecurityContext: {seccompProfile: {type: RuntimeDefault}}
containerSecurityContext: {seLinuxOptions: {level: "s0:c1,c2"}}
livenessProbe: {terminationGracePeriodSeconds: 5}
updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}
`)
}

// Ensure that no budget and no update may stop more members than a majority can spare, also where it is a percentage.
func TestValues_budgets(t *testing.T) {
	for _, v := range []struct{ values, says string }{
		{"pdb: {minAvailable: 1}", "pdb.minAvailable: 1 of 3"},
		{`pdb: {minAvailable: "10%"}`, "pdb.minAvailable: 10% of 3"},
		{`pdb: {minAvailable: "34%"}`, ""},
		{`pdb: {maxUnavailable: "50%"}`, "pdb.maxUnavailable: without 50% of 3"},
		{`pdb: {maxUnavailable: "33%"}`, ""},
		{"updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}", "may stop 2 of 3 members"},
		{`updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: "60%"}}`, "may stop 2 of 3 members"},
		{"updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}", ""},
	} {
		_, err := newCluster(t).install("db", helmtest.Values(t, "auth: {rbac: {create: false}}\nreplicaCount: 3\n"+v.values))
		switch {
		case v.says == "" && err != nil:
			t.Errorf("%s: got %v", v.values, err)
		case v.says != "" && (err == nil || !strings.Contains(err.Error(), v.says)):
			t.Errorf("%s: got %v; want %q", v.values, err, v.says)
		}
	}
}

// Ensure that an upgrade does not give members addresses that no other member knows, and names that no certificate has.
func TestUpgrade_address(t *testing.T) {
	const base = "auth: {rbac: {create: false}}\nreplicaCount: 3\n"
	c := newCluster(t)
	c.mustInstall("db", base)
	for _, other := range []string{"clusterDomain: cluster.locl", "containerPorts: {peer: 2390}"} {
		_, err := c.upgrade("db", helmtest.Values(t, base+other))
		if err == nil || !strings.Contains(err.Error(), "members that run are reached by other members at http://{}.db-quorate-headless") {
			t.Errorf("%s: got %v", other, err)
		}
	}
	if _, err := c.upgrade("db", helmtest.Values(t, base+"logLevel: debug")); err != nil {
		t.Errorf("the same address: got %v", err)
	}
}
