package charts_test

import (
	"slices"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/quorate/quorate/test/charts/helmtest"
)

const restores = "auth: {rbac: {create: false}}\nrestore: {from: 's3://a', at: 'entry:4711'}\n"

// encryptionOf are the flags about encryption that the container of a release gets which restores.
func encryptionOf(t *testing.T, r *release.Release) (flags []string) {
	t.Helper()
	spec := statefulSet(t, r)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	container := spec["initContainers"].([]any)[0].(map[string]any)
	for _, word := range container["args"].([]any) {
		if strings.Contains(word.(string), "encryption") {
			flags = append(flags, word.(string))
		}
	}
	return flags
}

// Ensure that a release restores into a directory that is encrypted as the members', however these are told: the command reads no
// variable, and members refuse a directory in the clear.
func TestRestore_encrypted(t *testing.T) {
	const file, service = "--encryption-key-file=/keys/$(MY_POD_NAME)", "--encryption-kms=unix:///run/kms.sock"
	for _, row := range []struct {
		values string
		want   []string
	}{
		{"", nil},
		{"extraFlags: [--memory=1GiB, --encryption-scratch-dir=/x]", nil},
		{"extraFlags: ['" + file + "', --memory=1GiB]", []string{file}},
		{"extraFlags: [-encryption-kms=unix:///run/kms.sock, '" + file + "']", []string{file, service}},
		{"extraFlags: [--encryption-key-file, /keys/$(MY_POD_NAME), --encryption-kms, 'unix:///run/kms.sock']",
			[]string{file, service}},
		{"extraEnvVars: [{name: ETCD_ENCRYPTION_KMS, value: 'unix:///run/kms.sock'}]",
			[]string{"--encryption-kms=$(ETCD_ENCRYPTION_KMS)"}},
		{"extraEnvVars: [{name: ETCD_ENCRYPTION_KEY_FILE, value: /other}]\nextraFlags: ['" + file + "']", []string{file}},
		{"extraFlags: ['--encryption-key-file={{ .Values.persistence.mountPath }}/key']",
			[]string{"--encryption-key-file=/var/lib/quorate/key"}},
	} {
		got := encryptionOf(t, newCluster(t).mustInstall("db", restores+row.values))
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.values, got, row.want)
		}
	}
}

// Ensure that no upgrade of a release that serves has restore in it, also while its StatefulSet is deleted: a pod whose claim is lost
// would begin with the past. A release that does not serve yet takes it, as where its first values were wrong.
func TestRestore_serves(t *testing.T) {
	c := newCluster(t)
	c.mustInstall("db", restores)
	refused := func(name string) {
		t.Helper()
		_, err := c.upgrade("db", helmtest.Values(t, restores))
		if err == nil || !strings.Contains(err.Error(), `take it out: restore: {from: "", at: ""}`) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	status := func(ready int) {
		c.objects["StatefulSet/db-quorate"]["status"] = map[string]any{"readyReplicas": ready}
	}
	status(1)
	c.mustUpgrade("db", restores+"logLevel: debug")
	status(2)
	refused("two of three serve")
	c.orphan("db-quorate", 3)
	for _, name := range []string{"Pod/db-quorate-0", "Pod/db-quorate-2"} {
		c.objects[name]["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Initialized", "status": "True"}}}
	}
	refused("without a StatefulSet")
	c.mustUpgrade("db", strings.Replace(restores, "restore: {from: 's3://a', at: 'entry:4711'}", "restore: {from: '', at: ''}", 1))
}
