// Package operator tests the chart of the operator: lint, renders that are compared with golden files, its rights, values that are
// refused, and an installation, an upgrade and a rollback against a cluster that only remembers manifests.
package operator

import (
	"slices"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quorate/quorate/test/charts/helmtest"
)

const (
	chartDir  = "../../../deploy/charts/quorate-operator"
	namespace = "quorate-system"
	name      = "quorate-operator"
)

func TestMain(m *testing.M) { helmtest.Main(m) }

func newCluster(t *testing.T) *helmtest.Cluster {
	t.Helper()
	return helmtest.New(t, chartDir, namespace, nil)
}

// install installs a release with values as YAML.
func install(t *testing.T, c *helmtest.Cluster, values string) (*release.Release, error) {
	t.Helper()
	return c.Install(name, helmtest.Values(t, values))
}

// objects are those of a manifest, each in Kubernetes' own type, which refuses fields that it does not have.
func objects(t *testing.T, manifest string) (all []runtime.Object) {
	t.Helper()
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		if strings.TrimSpace(text) == "" || strings.Contains(text, "\nkind: ServiceMonitor") {
			continue
		}
		object, err := helmtest.Strict(text)
		if err != nil {
			t.Errorf("%v in:\n%s", err, text)
			continue
		}
		all = append(all, object)
	}
	return all
}

func TestRender(t *testing.T) {
	for _, path := range helmtest.Sets(t) {
		r, err := install(t, newCluster(t), helmtest.Read(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		objects(t, r.Manifest)
		helmtest.CompareRender(t, path, strings.TrimSpace(r.Manifest)+"\n"+helmtest.Notes(r))
	}
}

func TestLint(t *testing.T) {
	for _, path := range helmtest.Sets(t) {
		helmtest.Lint(t, chartDir, namespace, path, helmtest.Values(t, helmtest.Read(t, path)))
	}
}

// rights are the rules of the roles of a release, a line for each verb: the scope, the resource and the verb. Aggregated roles are
// people's, and are left out.
func rights(t *testing.T, manifest string) (all []string) {
	t.Helper()
	add := func(scope string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, strings.TrimSpace(scope+" "+strings.TrimSuffix(resource+"."+group, ".")+" "+verb))
					}
				}
			}
		}
	}
	for _, object := range objects(t, manifest) {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			if !strings.HasSuffix(role.Name, "-view") && !strings.HasSuffix(role.Name, "-edit") {
				add("*", role.Rules)
			}
		case *rbacv1.Role:
			add(role.Namespace, role.Rules)
		}
	}
	return all
}

// Ensure that the operator has the rights that testdata/rights.txt lists, and no others: a new one is seen in a review.
func TestRights(t *testing.T) {
	r, err := install(t, newCluster(t), "")
	if err != nil {
		t.Fatal(err)
	}
	got := rights(t, r.Manifest)
	slices.Sort(got)
	helmtest.CompareGolden(t, "testdata/rights.txt", strings.Join(got, "\n")+"\n")
	for _, right := range got {
		words := strings.Fields(right)
		resource, verb := words[1], words[2]
		if resource == "*" || verb == "*" || strings.Contains(right, "*.") || verb == "escalate" || verb == "bind" || verb == "impersonate" {
			t.Errorf("%s: is more than a named right", right)
		}
		if resource == "secrets" && (verb == "list" || verb == "watch" || verb == "delete") {
			t.Errorf("%s: the operator needs only the Secrets that it knows by name", right)
		}
	}
}

// Ensure that an operator of some namespaces has no right on objects of others, and that the pods know its namespaces.
func TestRights_ofNamespaces(t *testing.T) {
	r, err := install(t, newCluster(t), "watchNamespaces: [prod, test]\nrbac: {certManager: false}")
	if err != nil {
		t.Fatal(err)
	}
	per := map[string]int{}
	for _, right := range rights(t, r.Manifest) {
		scope, of, _ := strings.Cut(right, " ")
		per[scope]++
		if scope == "*" && of != "nodes get" || scope == namespace && !strings.HasPrefix(of, "leases.") && !strings.HasPrefix(of, "events") ||
			strings.Contains(of, "cert-manager") {
			t.Errorf("the right %s", right)
		}
	}
	if per["prod"] < 20 || per["prod"] != per["test"] || len(per) != 4 {
		t.Errorf("rights by namespace: %v", per)
	}
	if !strings.Contains(r.Manifest, "- --namespaces=prod,test\n") {
		t.Error("the operator looks at other namespaces than it has rights in")
	}
}

// Ensure that values that mean nothing, or would stop the operator, are refused before anything is installed.
func TestValues_refused(t *testing.T) {
	for values, want := range map[string]string{
		"replicas: 3":                                  "replicas",
		"replicaCount: two":                            "replicaCount",
		"image: {repository: \"\"}":                    "image/repository",
		"image: {digest: sha256:1}":                    "image/digest",
		"watchNamespaces: [\"*\"]":                     "watchNamespaces",
		"metrics: {port: 8081}":                        "metrics/port",
		"metrics: {serviceMonitor: {interval: often}}": "interval",
		"extraArgs: [--namespaces=a]":                  "extraArgs",
		"extraArgs: [--leader-elect=false]":            "extraArgs",
		"serviceAccount: {create: false}":              "serviceAccount.name: name the account",
	} {
		if _, err := install(t, newCluster(t), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// Ensure that a release is upgraded and rolled back, and that the labels by which the Deployment knows its pods never change.
func TestUpgrade(t *testing.T) {
	c := newCluster(t)
	first, err := install(t, c, "")
	if err != nil {
		t.Fatal(err)
	}
	chart := helmtest.Load(t, chartDir)
	chart.Metadata.Version, chart.Metadata.AppVersion = "9.9.9", "9.9.9"
	second, err := c.Upgrade(chart, name, helmtest.Values(t, "replicaCount: 3\ncommonLabels: {team: data}"))
	if err != nil {
		t.Fatal(err)
	}
	upgraded := second.Manifest
	if was, is := selector(t, first.Manifest), selector(t, upgraded); was != is {
		t.Errorf("the selector changed from %s to %s, which the API server refuses", was, is)
	}
	if !strings.Contains(upgraded, "image: quorate-operator:v9.9.9") {
		t.Error("the image is not that of the chart's version")
	}
	if c.RollBack(name, 1).Manifest != first.Manifest {
		t.Error("the rollback rendered something else")
	}
}

// selector is that of the Deployment of a manifest.
func selector(t *testing.T, manifest string) string {
	t.Helper()
	for _, object := range objects(t, manifest) {
		if d, ok := object.(*appsv1.Deployment); ok {
			return metav1.FormatLabelSelector(d.Spec.Selector)
		}
	}
	t.Fatal("no Deployment")
	return ""
}

// Ensure that the chart brings the resources that its rules, its notes and the operator are about, and no conversion webhook.
func TestCRDs(t *testing.T) {
	chart := helmtest.Load(t, chartDir)
	var names []string
	for _, crd := range chart.CRDObjects() {
		object := helmtest.Values(t, string(crd.File.Data))
		names = append(names, object["metadata"].(map[string]any)["name"].(string))
		if _, converts := object["spec"].(map[string]any)["conversion"]; converts {
			t.Errorf("%s: names a conversion by a webhook, which nothing serves", crd.Filename)
		}
	}
	slices.Sort(names)
	want := []string{"quoratebackups.quorate.io", "quorateclusters.quorate.io", "quoraterestores.quorate.io"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
