package charts_test

import (
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
)

// Ensure that the notes of a release that has shrunk name the claims of the members that go, also where these did not found it.
func TestNotes_claims(t *testing.T) {
	const base = "auth: {rbac: {create: false}}\nreplicaCount: "
	c := newCluster(t)
	c.mustInstall("db", base+"3")
	for _, row := range []struct{ values, deletes string }{
		{base + "5", ""},
		{base + "3", " data-db-quorate-3 data-db-quorate-4"},
		{base + "1", " data-db-quorate-1 data-db-quorate-2"},
		{base + "1", " data-db-quorate-1 data-db-quorate-2"},
		{base + "3", ""},
		{base + "1\npersistence: {enabled: false}", ""},
	} {
		notes := c.mustUpgrade("db", row.values).Info.Notes
		_, deletes, _ := strings.Cut(notes, "kubectl delete pvc -n prod")
		if deletes, _, _ = strings.Cut(deletes, "\n"); deletes != row.deletes {
			t.Errorf("%s: got the claims %q, want %q", row.values, deletes, row.deletes)
		}
	}
}

// Ensure that a release says so if its members have too little memory to prove the backup.
func TestNotes_backup(t *testing.T) {
	const place = "backup: {enabled: true, url: 's3://a'}\n"
	for _, row := range []struct {
		values string
		warns  bool
	}{
		{place, true},
		{place + "resources: {limits: {memory: 1399Mi}}", true},
		{place + "resources: {limits: {memory: 1.2G}}", true},
		{place + "resources: {limits: {memory: 1400Mi}}", false},
		{place + "resources: {limits: {memory: 2Gi}}", false},
		{place + "resources: {limits: {memory: \"1468006400\"}}", false},
		{place + "resources: {limits: {memory: null}}", false},
		{place + "memory: 75%", false},
		{"backup: {enabled: true, url: 's3://a', recipients: [age1]}", false},
		{"backup: {enabled: true, url: 's3://a', verifyEvery: \"0\"}", false},
		{"disasterRecovery: {enabled: true}", true},
		{"{}", false},
	} {
		r := newCluster(t).mustInstall("db", row.values)
		if warns := strings.Contains(r.Info.Notes, "no member will prove the backup"); warns != row.warns {
			t.Errorf("%s: got %v, want %v", row.values, warns, row.warns)
		}
	}
}

// Ensure that commands that somebody runs in a pod find the member, and its certificates, by themselves.
func TestCommands_environment(t *testing.T) {
	const host = "$(MY_POD_NAME).db-quorate-headless.prod.svc.cluster.local:2379"
	for _, row := range []struct {
		values string
		want   map[string]string
	}{
		{"{}", map[string]string{"QUORATE_ENDPOINTS": "http://" + host, "QUORATE_CACERT": "", "QUORATE_CERT": ""}},
		{"certManager: {enabled: true}", map[string]string{"QUORATE_ENDPOINTS": "https://" + host,
			"QUORATE_CACERT": "/etc/quorate/client/ca.crt", "QUORATE_CERT": ""}},
		{"certManager: {enabled: true}\nauth: {client: {enableAuthentication: true}}", map[string]string{
			"QUORATE_CERT": "/etc/quorate/client/tls.crt", "QUORATE_KEY": "/etc/quorate/client/tls.key"}},
		{"auth: {client: {secureTransport: true, useAutoTLS: true}}", map[string]string{"QUORATE_ENDPOINTS": "https://" + host,
			"QUORATE_CACERT": ""}},
		{"extraEnvVars: [{name: QUORATE_ENDPOINTS, value: a}]", map[string]string{"QUORATE_ENDPOINTS": "a"}},
	} {
		got := env(t, newCluster(t).mustInstall("db", row.values))
		for name, want := range row.want {
			if got[name] != want {
				t.Errorf("%s: %s: got %q, want %q", row.values, name, got[name], want)
			}
		}
	}
}

// Ensure that a job whose time is over leaves the log of the tries that failed: a pod that tries again would go with it.
func TestJobs_keepLogs(t *testing.T) {
	r := newCluster(t).mustInstall("db", "backup: {enabled: true, url: 's3://a'}")
	if len(r.Hooks) != 3 {
		t.Errorf("got %d jobs", len(r.Hooks))
	}
	for _, h := range r.Hooks {
		if policy := restartPolicy(t, h); policy != "Never" {
			t.Errorf("%s: got the policy %s", h.Name, policy)
		}
	}
}

func restartPolicy(t *testing.T, h *release.Hook) any {
	t.Helper()
	spec := objectsOf(t, h.Manifest)[0]["spec"].(map[string]any)
	return spec["template"].(map[string]any)["spec"].(map[string]any)["restartPolicy"]
}
