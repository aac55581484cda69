package charts_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/registry"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"sigs.k8s.io/yaml"
)

const (
	chartDir  = "../../deploy/charts/quorate"
	namespace = "prod"
)

// TestMain keeps Helm's notes on links in the chart out of the output.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func loadChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cluster is what Helm installs into: it holds releases, and the objects of the last manifest that was applied.
type cluster struct {
	t      *testing.T
	config *action.Configuration
	// objects are those that templates can look up, by kind and name.
	objects map[string]map[string]any
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	client, err := registry.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, objects: map[string]map[string]any{}}
	c.config = &action.Configuration{
		Releases:   storage.Init(driver.NewMemory()),
		KubeClient: &fake.FailingKubeClient{PrintingKubeClient: fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}},
		Capabilities: &common.Capabilities{
			KubeVersion: common.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}, APIVersions: common.DefaultVersionSet,
		},
		RegistryClient:      client,
		CustomTemplateFuncs: template.FuncMap{"lookup": c.lookUp},
	}
	return c
}

func (c *cluster) lookUp(_, kind, _, name string) map[string]any {
	if name == "" {
		var items []any
		for _, key := range slices.Sorted(maps.Keys(c.objects)) {
			if strings.HasPrefix(key, kind+"/") {
				items = append(items, c.objects[key])
			}
		}
		return map[string]any{"items": items}
	}
	if object := c.objects[kind+"/"+name]; object != nil {
		return object
	}
	return map[string]any{}
}

// keep remembers the objects of a release, as the cluster has them from now on.
func (c *cluster) keep(r *release.Release) {
	c.objects = map[string]map[string]any{}
	for _, object := range objectsOf(c.t, r.Manifest) {
		c.objects[object["kind"].(string)+"/"+nameOf(object)] = object
	}
}

func (c *cluster) install(name string, values map[string]any) (*release.Release, error) {
	i := action.NewInstall(c.config)
	i.ReleaseName, i.Namespace, i.Timeout = name, namespace, time.Minute
	r, err := i.Run(loadChart(c.t), values)
	if err != nil {
		return nil, err
	}
	c.keep(r.(*release.Release))
	return r.(*release.Release), nil
}

func (c *cluster) upgrade(name string, values map[string]any) (*release.Release, error) {
	return c.upgradeTo(loadChart(c.t), name, values)
}

func (c *cluster) upgradeTo(chart *chartv2.Chart, name string, values map[string]any) (*release.Release, error) {
	u := action.NewUpgrade(c.config)
	u.Namespace, u.Timeout = namespace, time.Minute
	r, err := u.Run(name, chart, values)
	if err != nil {
		return nil, err
	}
	c.keep(r.(*release.Release))
	return r.(*release.Release), nil
}

// rollBack goes back to a revision, and returns that release as it was rendered then.
func (c *cluster) rollBack(name string, revision int) *release.Release {
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
	c.keep(r.(*release.Release))
	return r.(*release.Release)
}

// mustInstall installs a release with values as YAML.
func (c *cluster) mustInstall(name, values string) *release.Release {
	c.t.Helper()
	r, err := c.install(name, valuesOf(c.t, values))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *cluster) mustUpgrade(name, values string) *release.Release {
	c.t.Helper()
	r, err := c.upgrade(name, valuesOf(c.t, values))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func valuesOf(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// valuesFrom reads files of values, the later over the earlier ones, as `helm -f` does.
func valuesFrom(t *testing.T, paths ...string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		overlay(all, valuesOf(t, string(data)))
	}
	return all
}

func overlay(onto, from map[string]any) {
	for key, value := range from {
		below, isMap := value.(map[string]any)
		if under, wasMap := onto[key].(map[string]any); isMap && wasMap {
			overlay(under, below)
			continue
		}
		onto[key] = value
	}
}

// allOf is all that a release has, as `helm template` prints it: objects, then hooks.
func allOf(r *release.Release) string {
	var b bytes.Buffer
	b.WriteString(strings.TrimSpace(r.Manifest) + "\n")
	for _, hook := range r.Hooks {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", hook.Path, strings.TrimSpace(hook.Manifest))
	}
	return b.String()
}

func objectsOf(t *testing.T, manifest string) (objects []map[string]any) {
	t.Helper()
	for _, text := range strings.Split("\n"+manifest, "\n---") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

func textOf(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

// sets are the values that are rendered into golden files.
func sets(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("got %v, %v", found, err)
	}
	return found
}
