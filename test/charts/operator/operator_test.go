// Package operator tests the chart of the operator: lint, renders that are compared with golden files, its rights, values that are
// refused, and an installation, an upgrade and a rollback against a cluster that only remembers manifests.
package operator

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/registry"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

const (
	chartDir  = "../../../deploy/charts/quorate-operator"
	namespace = "quorate-system"
)

// TestMain keeps Helm's notes on links in the chart out of the output.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func configuration(t *testing.T) *action.Configuration {
	t.Helper()
	client, err := registry.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	return &action.Configuration{
		Releases:   storage.Init(driver.NewMemory()),
		KubeClient: &fake.FailingKubeClient{PrintingKubeClient: fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}},
		Capabilities: &common.Capabilities{
			KubeVersion: common.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}, APIVersions: common.DefaultVersionSet,
		},
		RegistryClient: client,
	}
}

func install(t *testing.T, c *action.Configuration, values string) (*release.Release, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	i := action.NewInstall(c)
	i.ReleaseName, i.Namespace, i.Timeout, i.SkipCRDs = "quorate-operator", namespace, time.Minute, true
	r, err := i.Run(chart, valuesOf(t, values))
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// objects are those of a manifest, each in Kubernetes' own type, which refuses fields that it does not have.
func objects(t *testing.T, manifest string) (all []runtime.Object) {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		if strings.TrimSpace(text) == "" || strings.Contains(text, "\nkind: ServiceMonitor") {
			continue
		}
		object, _, err := strict.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Errorf("%v in:\n%s", err, text)
			continue
		}
		all = append(all, object)
	}
	return all
}

func sets(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("got %v, %v", found, err)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRender(t *testing.T) {
	for _, path := range sets(t) {
		r, err := install(t, configuration(t), read(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		objects(t, r.Manifest)
		notes := strings.ReplaceAll(strings.TrimSpace(r.Info.Notes), "\n", "\n# ")
		got := fmt.Sprintf("%s\n---\n# NOTES.txt\n# %s\n", strings.TrimSpace(r.Manifest), notes)
		golden := strings.TrimSuffix(path, ".values.yaml") + ".golden.yaml"
		if *rewrite {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, golden); got != want {
			t.Errorf("the render differs from %s; look at the difference, then: go test ./operator -run TestRender -rewrite\n%s",
				golden, firstDifference(got, want))
		}
	}
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

func TestLint(t *testing.T) {
	for _, path := range sets(t) {
		for _, m := range lint.RunAll(chartDir, valuesOf(t, read(t, path)), namespace).Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", path, m)
			}
		}
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
	r, err := install(t, configuration(t), "")
	if err != nil {
		t.Fatal(err)
	}
	got := rights(t, r.Manifest)
	slices.Sort(got)
	const golden = "testdata/rights.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.Split(strings.TrimSpace(read(t, golden)), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
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
	r, err := install(t, configuration(t), "watchNamespaces: [prod, test]\nrbac: {certManager: false}")
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
		if _, err := install(t, configuration(t), values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// Ensure that a release is upgraded and rolled back, and that the labels by which the Deployment knows its pods never change.
func TestUpgrade(t *testing.T) {
	c := configuration(t)
	first, err := install(t, c, "")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	chart.Metadata.Version, chart.Metadata.AppVersion = "9.9.9", "9.9.9"
	u := action.NewUpgrade(c)
	u.Namespace, u.Timeout = namespace, time.Minute
	second, err := u.Run("quorate-operator", chart, valuesOf(t, "replicaCount: 3\ncommonLabels: {team: data}"))
	if err != nil {
		t.Fatal(err)
	}
	upgraded := second.(*release.Release).Manifest
	if was, is := selector(t, first.Manifest), selector(t, upgraded); was != is {
		t.Errorf("the selector changed from %s to %s, which the API server refuses", was, is)
	}
	if !strings.Contains(upgraded, "image: quorate-operator:v9.9.9") {
		t.Error("the image is not that of the chart's version")
	}
	b := action.NewRollback(c)
	b.Version, b.Timeout = 1, time.Minute
	if err := b.Run("quorate-operator"); err != nil {
		t.Fatal(err)
	}
	last, err := c.Releases.Last("quorate-operator")
	if err != nil || last.(*release.Release).Manifest != first.Manifest {
		t.Errorf("the rollback rendered something else: %v", err)
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
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range chart.CRDObjects() {
		object := valuesOf(t, string(crd.File.Data))
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
