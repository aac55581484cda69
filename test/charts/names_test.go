package charts_test

import (
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/quorate/quorate/test/charts/helmtest"
)

// Ensure that an upgrade whose values give the members another name is refused: helm would delete the StatefulSet and the Services
// of the cluster, and an empty one would be founded.
func TestUpgrade_otherName(t *testing.T) {
	const plain = "auth: {rbac: {create: false}}\n"
	c := newCluster(t)
	c.mustInstall("other", plain)
	others := c.objects
	takeover := valuesFrom(t, layers("testdata/bitnami-takeover.values.yaml")...)
	if _, err := c.install("shop", takeover); err != nil {
		t.Fatal(err)
	}
	for name, object := range others { // a release beside it
		c.objects[name] = object
	}
	refused := func(when, values, says string) {
		t.Helper()
		if _, err := c.upgrade("shop", helmtest.Values(t, values)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v; want %q", when, err, says)
		}
	}
	refused("without the values of the takeover", plain,
		"has the members shop-etcd-0 and so on, and these values call them shop-quorate-0")
	refused("another name", plain+"fullnameOverride: store", "these values call them store-0")
	delete(c.objects, "StatefulSet/shop-etcd")
	refused("the StatefulSet is deleted for a while", plain, "helm would delete shop-etcd")
	if _, err := c.upgrade("shop", takeover); err != nil {
		t.Errorf("the same values: got %v", err)
	}
	former := map[string]any{"metadata": map[string]any{"name": "shop-etcd", "labels": map[string]any{
		"app.kubernetes.io/instance": "shop", "helm.sh/chart": "etcd-12.0.18"}}}
	c.objects = map[string]map[string]any{"StatefulSet/shop-etcd": former}
	refused("the takeover of a release of the former chart, without its values", plain, "shop-etcd-0")
	c.objects = map[string]map[string]any{"StatefulSet/shop-etcd": former}
	if _, err := c.upgrade("shop", takeover); err != nil {
		t.Errorf("the takeover: got %v", err)
	}
}

// Ensure that a chart above this one may have an etcd of another chart beside it.
func TestUpgrade_besideOthers(t *testing.T) {
	c := newCluster(t)
	above := &chartv2.Chart{Metadata: &chartv2.Metadata{APIVersion: "v2", Name: "shop", Version: "1.0.0"}}
	above.AddDependency(helmtest.Load(t, chartDir))
	values := map[string]any{"quorate": helmtest.Values(t, "auth: {rbac: {create: false}}")}
	if _, err := c.install("shop", helmtest.Values(t, "auth: {rbac: {create: false}}")); err != nil {
		t.Fatal(err)
	}
	named := func(chart string) {
		c.objects = map[string]map[string]any{"StatefulSet/shop-etcd": {"metadata": map[string]any{"name": "shop-etcd",
			"labels": map[string]any{"app.kubernetes.io/instance": "shop", "helm.sh/chart": chart}}},
			"Service/bare": {"metadata": map[string]any{"name": "bare"}}}
	}
	named("etcd-12.0.18")
	if _, err := c.upgradeTo(above, "shop", values); err != nil {
		t.Errorf("an etcd beside it: got %v", err)
	}
	named("quorate-1.0.0")
	if _, err := c.upgradeTo(above, "shop", values); err == nil || !strings.Contains(err.Error(), "has the members shop-etcd-0") {
		t.Errorf("its own members: got %v", err)
	}
}
