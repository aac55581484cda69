// Package helmtest renders the charts of deploy/charts in tests, with Helm as a library: it installs, upgrades and rolls back
// against a cluster that only remembers releases, and compares renders with golden files.
package helmtest

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/registry"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// Main is the TestMain of a chart's tests. It keeps Helm's notes on links in the chart out of the output.
func Main(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// A Cluster has releases of a chart, and nothing runs in it.
type Cluster struct {
	t         *testing.T
	dir       string
	namespace string
	config    *action.Configuration
}

// New returns a cluster without a release. Charts are read from dir, and templates get further functions.
func New(t *testing.T, dir, namespace string, functions template.FuncMap) *Cluster {
	t.Helper()
	client, err := registry.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	quiet := fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}
	return &Cluster{t, dir, namespace, &action.Configuration{
		Releases:   storage.Init(driver.NewMemory()),
		KubeClient: &fake.FailingKubeClient{PrintingKubeClient: quiet},
		Capabilities: &common.Capabilities{
			KubeVersion: common.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}, APIVersions: common.DefaultVersionSet,
		},
		RegistryClient:      client,
		CustomTemplateFuncs: functions,
	}}
}

// Load reads the chart in a directory.
func Load(t *testing.T, dir string) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Install installs a release of the chart. CRDs are left out: nothing here knows them.
func (c *Cluster) Install(name string, values map[string]any) (*release.Release, error) {
	c.t.Helper()
	i := action.NewInstall(c.config)
	i.ReleaseName, i.Namespace, i.Timeout, i.SkipCRDs = name, c.namespace, time.Minute, true
	r, err := i.Run(Load(c.t, c.dir), values)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

// Upgrade upgrades a release to a chart and values.
func (c *Cluster) Upgrade(chart *chartv2.Chart, name string, values map[string]any) (*release.Release, error) {
	u := action.NewUpgrade(c.config)
	u.Namespace, u.Timeout = c.namespace, time.Minute
	r, err := u.Run(name, chart, values)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

// RollBack goes back to a revision, and returns that release as it was rendered then.
func (c *Cluster) RollBack(name string, revision int) *release.Release {
	c.t.Helper()
	b := action.NewRollback(c.config)
	b.Version, b.Timeout = revision, time.Minute
	if err := b.Run(name); err != nil {
		c.t.Fatal(err)
	}
	r, err := c.config.Releases.Last(name)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.(*release.Release)
}

// Values are those of a text in YAML.
func Values(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// Sets are the files of values in testdata, each with a golden file of its render.
func Sets(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("got %v, %v", found, err)
	}
	return found
}

// Read is the text of a file.
func Read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Strict decodes an object into Kubernetes' own type, which refuses fields that it does not have, twice the same field, and
// values of other types.
func Strict(text string) (runtime.Object, error) {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := strict.Decode([]byte(text), nil, nil)
	return object, err
}

// Notes are those of a release, as comments behind its manifest.
func Notes(r *release.Release) string {
	return fmt.Sprintf("---\n# NOTES.txt\n# %s\n", strings.ReplaceAll(strings.TrimSpace(r.Info.Notes), "\n", "\n# "))
}

// CompareRender compares a render with the golden file of a set. With -rewrite it writes the file first.
func CompareRender(t *testing.T, set, got string) {
	t.Helper()
	golden := strings.TrimSuffix(set, ".values.yaml") + ".golden.yaml"
	CompareGolden(t, golden, got)
}

// CompareGolden compares a text with that of a golden file. With -rewrite it writes the file first.
func CompareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := Read(t, golden); got != want {
		t.Errorf("%s differs; look at the difference, then run the test with -rewrite\n%s", golden, FirstDifference(got, want))
	}
}

// FirstDifference is the first line in which two texts differ.
func FirstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i+1, a[i], append(b, "the end")[min(i, len(b))])
		}
	}
	return "the end is missing"
}

// Lint wants Helm to have nothing against a chart with the values of a set; the set is empty for the chart's own values.
func Lint(t *testing.T, dir, namespace, set string, values map[string]any) {
	t.Helper()
	for _, m := range lint.RunAll(dir, values, namespace).Messages {
		if m.Severity >= support.WarningSev {
			t.Errorf("%s: %v", set, m)
		}
	}
}
