package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that `config print` says what --memory leaves, refuses a setting that does not fit into it, and reads the files that a
// start would read and no others.
func TestPreview(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.pem")
	if err := os.WriteFile(broken, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	tls := []string{"--cert-file=" + broken, "--key-file=" + broken}
	for _, row := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"memory", []string{"--memory=512MiB"}, 0, "# In effect on this machine: 512 MiB of memory for the process, and of " +
			"that\n# snapshot-log-bytes: "},
		{"more than it leaves", []string{"--memory=512MiB", "--snapshot-log-bytes=1073741824"}, 1, "lower it, or raise " +
			"--memory"},
		{"clients by TLS", append(tls, "--listen-client-urls=https://127.0.0.1:1",
			"--advertise-client-urls=https://127.0.0.1:1"), 1, "--cert-file"},
		{"clients without", tls, 0, "In effect"},
		{"no such file", []string{"--peer-cert-file=" + dir + "/none", "--peer-key-file=" + dir + "/none"}, 1, "none: no " +
			"such file"},
		{"a key of tokens", []string{"--auth-token=jwt,pub-key=" + broken + ",sign-method=RS256"}, 1, "--auth-token"},
		{"made at a start", []string{"--peer-auto-tls", "--data-dir=" + dir + "/data"}, 0, "In effect"},
	} {
		var out, errs bytes.Buffer
		s := command.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}
		status := ctl.RunWith(t.Context(), append([]string{"config", "print"}, row.args...), s, ctl.Tools{Preview: preview})
		if status != row.status || !strings.Contains(out.String()+errs.String(), row.want) {
			t.Errorf("%s: status %d, want %d; %q is not in %s%s", row.name, status, row.status, row.want, &out, &errs)
		}
	}
	if _, err := os.Stat(dir + "/data"); err == nil {
		t.Error("a preview made the data directory")
	}
}
