package charts_test

import (
	"encoding/base64"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/quorate/quorate/test/charts/helmtest"
)

// env is the environment of the members of a release, without what refers to other objects.
func env(t *testing.T, r *release.Release) map[string]string {
	t.Helper()
	set := statefulSet(t, r)
	out := map[string]string{}
	spec := set["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	for _, v := range spec["containers"].([]any)[0].(map[string]any)["env"].([]any) {
		variable := v.(map[string]any)
		if _, twice := out[variable["name"].(string)]; twice {
			t.Errorf("the variable %v is there twice", variable["name"])
		}
		out[variable["name"].(string)], _ = variable["value"].(string)
	}
	return out
}

func statefulSet(t *testing.T, r *release.Release) map[string]any {
	t.Helper()
	for _, object := range objectsOf(t, r.Manifest) {
		if object["kind"] == "StatefulSet" {
			return object
		}
	}
	t.Fatal("no StatefulSet")
	return nil
}

// job is the command of a job of a release, and when Helm runs it; empty if it has none.
func job(t *testing.T, r *release.Release, name string) (args, hook string) {
	t.Helper()
	for _, h := range r.Hooks {
		if !strings.HasSuffix(h.Name, "-"+name) {
			continue
		}
		object := objectsOf(t, h.Manifest)[0]
		spec := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		var words []string
		for _, word := range spec["containers"].([]any)[0].(map[string]any)["args"].([]any) {
			words = append(words, word.(string))
		}
		return strings.Join(words, " "), object["metadata"].(map[string]any)["annotations"].(map[string]any)["helm.sh/hook"].(string)
	}
	return "", ""
}

// TestUpgrade_scale changes the number of members: a job does it before the pods change, also on the way back, the founders stay
// who they are, and no member that stays is restarted.
func TestUpgrade_scale(t *testing.T) {
	const base = "auth: {rbac: {rootPassword: secret}}\nreplicaCount: "
	c := newCluster(t)
	first := c.mustInstall("db", base+"3")
	pods := func(r *release.Release) string {
		return textOf(t, statefulSet(t, r)["spec"].(map[string]any)["template"])
	}
	for _, row := range []struct{ count, hook string }{
		{"3", "pre-rollback"}, {"5", "pre-rollback,pre-upgrade"}, {"5", "pre-rollback"}, {"3", "pre-rollback,pre-upgrade"},
		{"1", "pre-rollback,pre-upgrade"}, {"3", "pre-rollback,pre-upgrade"},
	} {
		r := c.mustUpgrade("db", base+row.count)
		args, hook := job(t, r, "scale")
		want := "member scale db-quorate --to=" + row.count +
			" --peer-urls=http://{}.db-quorate-headless.prod.svc.cluster.local:2380 --yes"
		if args != want || hook != row.hook {
			t.Errorf("%s members: got the job %q at %s, want %q at %s", row.count, args, hook, want, row.hook)
		}
		if pods(r) != pods(first) {
			t.Errorf("%s members: the pods differ from those before, so all would restart: %s", row.count,
				helmtest.FirstDifference(pods(r), pods(first)))
		}
	}
	back := c.rollBack("db", 3)
	if args, hook := job(t, back, "scale"); !strings.Contains(args, "--to=5 ") || !strings.Contains(hook, "pre-rollback") {
		t.Errorf("back to five members: got the job %q at %s", args, hook)
	}
	if args, hook := job(t, c.mustUpgrade("db", base+"3\nscaling: {job: never}"), "scale"); args != "" {
		t.Errorf("without jobs: got %q at %s", args, hook)
	}
}

// Ensure that the only founder of a cluster that has grown founds nothing any more: it would found a second one if its claim were
// lost.
func TestUpgrade_fromOne(t *testing.T) {
	const base = "auth: {rbac: {create: false}}\nreplicaCount: "
	c := newCluster(t)
	one := env(t, c.mustInstall("db", base+"1"))
	if one["ETCD_JOIN"] != "" || strings.Count(one["ETCD_INITIAL_CLUSTER"], "=") != 1 {
		t.Errorf("one member: got %v", one)
	}
	grown := env(t, c.mustUpgrade("db", base+"3"))
	if _, founds := grown["ETCD_INITIAL_CLUSTER"]; founds || !strings.Contains(grown["ETCD_JOIN"], "db-quorate-1.") {
		t.Errorf("grown to three: got %v", grown)
	}
	if again := env(t, c.mustUpgrade("db", base+"3")); again["ETCD_JOIN"] != grown["ETCD_JOIN"] {
		t.Errorf("again: got %v", again)
	}
}

// Ensure that an upgrade keeps the password that was drawn, and refuses to draw another one where it cannot be read.
func TestUpgrade_password(t *testing.T) {
	c := newCluster(t)
	password := func() string {
		data := c.objects["Secret/db-quorate"]["data"].(map[string]any)["etcd-root-password"].(string)
		text, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	c.mustInstall("db", "{}")
	drawn := password()
	if len(drawn) != 24 {
		t.Errorf("got the password %q", drawn)
	}
	c.mustUpgrade("db", "{}")
	if password() != drawn {
		t.Errorf("the upgrade made %q of the password %q", password(), drawn)
	}
	kept := c.objects["Secret/db-quorate"]
	if !strings.Contains(textOf(t, kept), "helm.sh/resource-policy: keep") {
		t.Error("the Secret goes with the release, and the data in the claims demand its password")
	}
	c = newCluster(t)
	c.objects["Secret/db-quorate"] = kept
	if _, err := c.install("db", helmtest.Values(t, "auth: {rbac: {rootPassword: other}}")); err == nil ||
		!strings.Contains(err.Error(), "delete the Secret and the claims") {
		t.Errorf("another password beside the Secret of an earlier release: got %v", err)
	}
	c.mustInstall("db", "{}")
	if _, err := c.upgrade("db", helmtest.Values(t, "auth: {rbac: {rootPassword: other}}")); err == nil ||
		!strings.Contains(err.Error(), "quorate user passwd root") {
		t.Errorf("another password at an upgrade: got %v", err)
	}
	c.mustUpgrade("db", "auth: {rbac: {rootPassword: "+drawn+"}}")
	if password() != drawn {
		t.Errorf("the next release has the password %q, and the data that of %q", password(), drawn)
	}
	delete(c.objects, "Secret/db-quorate")
	if _, err := c.upgrade("db", helmtest.Values(t, "logLevel: warn")); err == nil ||
		!strings.Contains(err.Error(), "the password of root cannot be read") {
		t.Errorf("without the secret: got %v", err)
	}
}

// Ensure that a variable of the user takes the place of the chart's: twice the same name is refused by an API server.
func TestRender_replacedVariable(t *testing.T) {
	got := env(t, newCluster(t).mustInstall("db", "zoneLabel: topology.kubernetes.io/zone\nextraEnvVars: [{name: ETCD_ZONE, value: a}, "+
		"{name: ETCD_LOG_LEVEL, value: warn}, {name: ETCD_INITIAL_CLUSTER_TOKEN, value: b}]"))
	if got["ETCD_ZONE"] != "a" || got["ETCD_LOG_LEVEL"] != "warn" || got["ETCD_INITIAL_CLUSTER_TOKEN"] != "b" {
		t.Errorf("got %v", got)
	}
}

// Ensure that values which cannot be honoured are refused, with what to do.
func TestRefused(t *testing.T) {
	for _, row := range []struct{ values, says string }{
		{"image: {repository: bitnami/etcd}", "image.repository: bitnami/etcd is an image of etcd"},
		{"podManagementPolicy: OrderedReady", "leave it at Parallel"},
		{"minReadySeconds: 5", "leave it at 0: an update would delete all pods at once"},
		{"persistentVolumeClaimRetentionPolicy: {enabled: true, whenScaled: Delete}", "whenScaled: Delete would delete the disks of all"},
		{"persistentVolumeClaimRetentionPolicy: {enabled: true, whenDeleted: Delete}", "kubectl patch statefulset -n prod db-quorate -p"},
		{"image: {tag: v1.0.0}", "image.tag: v1.0.0 is of Quorate 1.0, and this chart is for 1.1 and later"},
		{"image: {tag: '1.0'}", "image.tag: 1.0 is of Quorate 1.0"},
		{"founders: 5", "they would wait for ever"},
		{"auth: {client: {secureTransport: true}}", "auth.client.existingSecret: name the Secret"},
		{"auth: {client: {secureTransport: true, existingSecret: a}}", "auth.client.caFilename: name the key"},
		{"auth: {peer: {secureTransport: true}}", "auth.peer.existingSecret: name the Secret"},
		{"auth: {peer: {enableAuthentication: true}}", "it needs auth.peer.secureTransport"},
		{"auth: {peer: {secureTransport: true, useAutoTLS: true, enableAuthentication: true}}", "prove nothing"},
		{"auth: {token: {enabled: true, type: jwt}}", "auth.token.enabled: false"},
		{"auth: {rbac: {create: false, allowNoneAuthentication: false}}", "say so by allowNoneAuthentication"},
		{"pdb: {minAvailable: 1}", "1 of 3 members are no majority; give at least 2"},
		{"pdb: {maxUnavailable: 2}", "give at most 1"},
		{"backup: {enabled: true}", "backup.url: say where"},
		{"backup: {enabled: true, url: 's3:/backups'}", `backup.url: "s3:/backups" is no place`},
		{"backup: {enabled: true, url: '/mnt/backups'}", "write s3://BUCKET/PREFIX or file:///DIRECTORY"},
		{"backup: {enabled: true, url: 's3://a', keep: 14}", "got number, want string"},
		{"backup: {enabled: true, url: 's3://a', keep: 14x}", `backup.keep: "14x" is no rule`},
		{"backup: {enabled: true, url: 's3://a'}\ndisasterRecovery: {enabled: true}", "enable one of them"},
		{"restore: {from: '/mnt/backups', at: 'entry:1'}", `restore.from: "/mnt/backups" is no place`},
		{"restore: {from: 's3://a'}", "write entry:INDEX"},
		{"restore: {at: 'entry:1'}", `restore.from: "" is no place`},
		{"restore: {from: 's3://a', at: latest}", `restore.at: "latest" is no entry`},
		{"restore: {from: 's3://a', at: 'entry:1'}\nreplicaCount: 5\nfounders: 3", "take it out before their number changes"},
		{"restore: {from: 's3://a', at: 'entry:1'}\ninitialClusterState: existing", `set initialClusterState: ""`},
		{"restore: {from: 's3://a', at: 'entry:1'}\nbackup: {enabled: true, url: 's3://a'}", "give the new one a prefix of its own"},
		{"metrics: {prometheusRule: {enabled: true}}", "metrics.prometheusRule.enabled: it needs metrics.enabled"},
		{"metrics: {serviceMonitor: {enabled: true}}", "metrics.serviceMonitor.enabled: it needs metrics.enabled"},
		{"metrics: {podMonitor: {enabled: true}}", "metrics.podMonitor.enabled: it needs metrics.enabled"},
		{"command: [sh]", "command: it is not honoured here; set extraFlags"},
		{"configuration: 'a: b'", "configuration: it is not honoured here"},
		{"startFromSnapshot: {enabled: true}", "startFromSnapshot.enabled: it is not honoured here: docs/kubernetes-chart.md#restore"},
		{"volumePermissions: {enabled: true}", "podSecurityContext.fsGroup"},
		{"replicaCount: 0", "replicaCount"},
		{"replicas: 3", "additional properties 'replicas'"},
		{"auth: {rbac: {rootpassword: x}}", "rootpassword"},
		{"console: {mode: write}", "mode"},
	} {
		if _, err := newCluster(t).install("db", helmtest.Values(t, row.values)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v; want %q", row.values, err, row.says)
		}
	}
	for _, values := range []string{"image: {tag: v1.10.0}", "image: {tag: v1.0.0, digest: 'sha256:ab'}", "image: {tag: v11.0}",
		"persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}",
		"persistentVolumeClaimRetentionPolicy: {enabled: true, allowLoss: true, whenScaled: Delete, whenDeleted: Delete}"} {
		if _, err := newCluster(t).install("db", helmtest.Values(t, values)); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
	c := newCluster(t)
	c.mustInstall("db", "{}")
	if _, err := c.upgrade("db", helmtest.Values(t, "certManager: {enabled: true}")); err == nil ||
		!strings.Contains(err.Error(), "members that run talk http") {
		t.Errorf("TLS between members that run without: got %v", err)
	}
}

// Ensure that the takeover keeps the names by which a release of the former chart is known: Services, claims, Secret, user.
func TestTakeover_names(t *testing.T) {
	c := newCluster(t)
	r, err := c.install("shop", valuesFrom(t, layers("testdata/bitnami-takeover.values.yaml")...))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"StatefulSet/shop-etcd", "Service/shop-etcd", "Service/shop-etcd-headless",
		"PersistentVolumeClaim/shop-etcd-snapshotter"} {
		if c.objects[name] == nil {
			t.Errorf("no %s", name)
		}
	}
	set := textOf(t, statefulSet(t, r))
	for _, part := range []string{"serviceName: shop-etcd-headless\n", "name: data\n", "runAsUser: 1001\n", "fsGroup: 1001\n"} {
		if !strings.Contains(set, part) {
			t.Errorf("no %q in:\n%s", part, set)
		}
	}
	got := env(t, r)
	for name, want := range map[string]string{
		"ETCD_DATA_DIR":                    "/bitnami/etcd/data",
		"ETCD_INITIAL_ADVERTISE_PEER_URLS": "http://$(MY_POD_NAME).shop-etcd-headless.prod.svc.cluster.local:2380",
		"ETCD_QUOTA_BACKEND_BYTES":         "4294967296",
		"ETCD_INITIAL_CLUSTER":             "",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}
