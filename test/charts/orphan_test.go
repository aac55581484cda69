package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/test/charts/helmtest"
)

// orphan deletes the StatefulSet of a release as `kubectl delete statefulset --cascade=orphan` does: its pods run on.
func (c *cluster) orphan(release string, count int) {
	c.t.Helper()
	set := c.objects["StatefulSet/"+release]
	template := set["spec"].(map[string]any)["template"].(map[string]any)
	for i := range count {
		name := fmt.Sprintf("%s-%d", release, i)
		c.objects["Pod/"+name] = map[string]any{"spec": template["spec"],
			"metadata": map[string]any{"name": name, "labels": template["metadata"].(map[string]any)["labels"]}}
	}
	c.objects["Pod/other-0"] = map[string]any{"metadata": map[string]any{"name": "other-0"}}
	delete(c.objects, "StatefulSet/"+release)
}

// Ensure that an upgrade after the StatefulSet was deleted without its pods, as to grow the disks, knows what the StatefulSet knew:
// the founders, the number of members, and whether they talk TLS.
func TestUpgrade_orphaned(t *testing.T) {
	const base = "auth: {rbac: {rootPassword: secret}}\nreplicaCount: "
	c := newCluster(t)
	c.mustInstall("db", base+"3")
	before := textOf(t, statefulSet(t, c.mustUpgrade("db", base+"5"))["spec"].(map[string]any)["template"])
	c.orphan("db-quorate", 5)
	if _, err := c.upgrade("db", helmtest.Values(t, base+"5\ncertManager: {enabled: true}")); err == nil ||
		!strings.Contains(err.Error(), "members that run talk http") {
		t.Errorf("TLS between members that run without: got %v", err)
	}
	r := c.mustUpgrade("db", base+"5\npersistence: {size: 40Gi}")
	if now := textOf(t, statefulSet(t, r)["spec"].(map[string]any)["template"]); now != before {
		t.Errorf("the pods differ from those before, so all would restart: %s", helmtest.FirstDifference(now, before))
	}
	if args, hook := job(t, r, "scale"); hook != "pre-rollback" {
		t.Errorf("as many members: got the job %q at %s", args, hook)
	}
	c.orphan("db-quorate", 5)
	r = c.mustUpgrade("db", base+"3\npersistence: {size: 40Gi}")
	if args, hook := job(t, r, "scale"); !strings.Contains(args, "--to=3 ") || hook != "pre-rollback,pre-upgrade" {
		t.Errorf("fewer members: got the job %q at %s", args, hook)
	}
	if got := env(t, r)["ETCD_INITIAL_CLUSTER"]; strings.Count(got, "=") != 3 {
		t.Errorf("got the founders %s", got)
	}
}

// Ensure that nobody guesses the founders where the StatefulSet is gone and the release was made by a chart that noted them there
// alone, and that values cannot change them.
func TestUpgrade_founders(t *testing.T) {
	const base = "auth: {rbac: {create: false}}\nreplicaCount: 5"
	c := newCluster(t)
	c.mustInstall("db", "auth: {rbac: {create: false}}")
	refused := func(values, says string) {
		t.Helper()
		if _, err := c.upgrade("db", helmtest.Values(t, values)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v; want %q", values, err, says)
		}
	}
	refused(base+"\nfounders: 5", "founders: 3 members founded the cluster")
	c.orphan("db-quorate", 3)
	delete(c.objects["Service/db-quorate-headless"]["metadata"].(map[string]any), "annotations")
	refused(base, "founders: nothing tells any more how many members founded the cluster")
	if got := env(t, c.mustUpgrade("db", base+"\nfounders: 3")); strings.Count(got["ETCD_INITIAL_CLUSTER"], "=") != 3 {
		t.Errorf("given: got %v", got)
	}
	if got := env(t, c.mustUpgrade("db", base)); strings.Count(got["ETCD_INITIAL_CLUSTER"], "=") != 3 {
		t.Errorf("noted again: got %v", got)
	}
}

// Ensure that a claim's size or class that Kubernetes changes in no StatefulSet is refused with what to do, and that the same size
// in other words is no change.
func TestUpgrade_size(t *testing.T) {
	const base = "auth: {rbac: {create: false}}\npersistence: "
	c := newCluster(t)
	c.mustInstall("db", base+"{size: 2048Mi, storageClass: fast}")
	c.mustUpgrade("db", base+"{size: 2Gi, storageClass: fast}")
	for _, row := range []struct{ values, says string }{
		{"{size: 4Gi, storageClass: fast}", `persistence.size: the StatefulSet has 2Gi, and Kubernetes does not change it in place`},
		{"{size: 1Gi, storageClass: fast}", "persistence.size: "},
		{"{size: 2Gi, storageClass: slow}", `persistence.storageClass: the StatefulSet has "fast"`},
		{"{size: 2Gi}", `persistence.storageClass: the StatefulSet has "fast"`},
	} {
		if _, err := c.upgrade("db", helmtest.Values(t, base+row.values)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v; want %q", row.values, err, row.says)
		}
	}
}
