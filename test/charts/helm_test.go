package charts_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/test/charts/helmtest"
)

const (
	chartDir  = "../../deploy/charts/quorate"
	namespace = "prod"
)

func TestMain(m *testing.M) { helmtest.Main(m) }

// cluster is what Helm installs into: it holds releases, and the objects of the last manifest that was applied.
type cluster struct {
	t    *testing.T
	helm *helmtest.Cluster
	// objects are those that templates can look up, by kind and name.
	objects map[string]map[string]any
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, objects: map[string]map[string]any{}}
	c.helm = helmtest.New(t, chartDir, namespace, template.FuncMap{"lookup": c.lookUp})
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
func (c *cluster) keep(r *release.Release, err error) (*release.Release, error) {
	if err != nil {
		return nil, err
	}
	c.objects = map[string]map[string]any{}
	for _, object := range objectsOf(c.t, r.Manifest) {
		c.objects[object["kind"].(string)+"/"+nameOf(object)] = object
	}
	return r, nil
}

func (c *cluster) install(name string, values map[string]any) (*release.Release, error) {
	return c.keep(c.helm.Install(name, values))
}

func (c *cluster) upgrade(name string, values map[string]any) (*release.Release, error) {
	return c.upgradeTo(helmtest.Load(c.t, chartDir), name, values)
}

func (c *cluster) upgradeTo(chart *chartv2.Chart, name string, values map[string]any) (*release.Release, error) {
	return c.keep(c.helm.Upgrade(chart, name, values))
}

// rollBack goes back to a revision, and returns that release as it was rendered then.
func (c *cluster) rollBack(name string, revision int) *release.Release {
	c.t.Helper()
	r, _ := c.keep(c.helm.RollBack(name, revision), nil)
	return r
}

// mustInstall installs a release with values as YAML.
func (c *cluster) mustInstall(name, values string) *release.Release {
	c.t.Helper()
	r, err := c.install(name, helmtest.Values(c.t, values))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *cluster) mustUpgrade(name, values string) *release.Release {
	c.t.Helper()
	r, err := c.upgrade(name, helmtest.Values(c.t, values))
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// valuesFrom reads files of values, the later over the earlier ones, as `helm -f` does.
func valuesFrom(t *testing.T, paths ...string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, path := range paths {
		overlay(all, helmtest.Values(t, helmtest.Read(t, path)))
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
