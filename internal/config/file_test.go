package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files instead of comparing with them")

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate.yml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that a file replaces flags and environment as a whole, and says so.
func TestLoad_file(t *testing.T) {
	path := writeFile(t, `
name: m1
data-dir: /var/lib/quorate
heartbeat-interval: 50
election-timeout: "500ms"
watch-progress-notify-interval: 5000000000
grpc-keepalive-timeout: 3s
listen-client-urls: http://127.0.0.1:1,http://127.0.0.2:1
advertise-client-urls: http://127.0.0.1:1
log-outputs: [stderr, /tmp/log]
strict-reconfig-check: false
auto-compaction-retention: 1
initial-cluster:
feature-gates: InitialCorruptCheck=true
socket-options:
  reuse-address: true
client-transport-security:
  client-cert-auth: false
  cert-file:
peer-transport-security:
  allowed-cn: []
cipher-suites: [TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384]
snapshot-count: 7
proxy: 'off'
`)
	for _, given := range []struct {
		name    string
		args    []string
		environ []string
	}{
		{"by flag", []string{"--config-file", path, "--name=other"}, []string{"ETCD_NAME=third"}},
		{"by variable", []string{"--name=other"}, []string{"ETCD_CONFIG_FILE=" + path}},
	} {
		t.Run(given.name, func(t *testing.T) {
			c := mustLoad(t, given.args, given.environ...)
			if c.Name != "m1" || c.Storage.DataDir != "/var/lib/quorate" ||
				c.Consensus.HeartbeatInterval != 50*time.Millisecond ||
				c.Consensus.ElectionTimeout != 500*time.Millisecond || c.WatchProgressNotifyInterval != 5*time.Second ||
				c.Keepalive.Timeout != 3*time.Second || len(c.Listen.ClientURLs) != 2 ||
				len(c.Monitoring.LogOutputs) != 2 ||
				len(c.TLS.CipherSuites) != 2 ||
				c.Consensus.StrictReconfigCheck || !c.FeatureGates.Enabled("InitialCorruptCheck") {
				t.Errorf("got %+v", c)
			}
			if keep, err := c.AutoCompaction(); err != nil || keep.Period != time.Hour {
				t.Errorf("retention: got %v, %v; want 1h", keep, err)
			}
			if c.File() != path {
				t.Errorf("file: got %q, want %q", c.File(), path)
			}
			all := strings.Join(c.Warnings, "\n")
			if !strings.Contains(all, "replaces all flags and ETCD_ variables; ignored: --name") ||
				!strings.Contains(all, "--snapshot-count=7 is accepted") || !c.Listen.ReuseAddress {
				t.Errorf("got warnings %q, reuse of addresses %v", all, c.Listen.ReuseAddress)
			}
		})
	}
}

// Ensure that all faults of a file are reported together, each with its key.
func TestLoad_fileFaults(t *testing.T) {
	for _, row := range []struct {
		name, content string
		want          []string
	}{
		{"unknown and malformed keys", "nmae: m1\nmax-learners: many\npre-vote: 7\npeer-transport-security: 5\n" +
			"client-transport-security: {crt: x}\n", []string{
			"unknown key client-transport-security.crt", "max-learners: must be a whole number",
			"unknown key nmae; did you mean name?", "peer-transport-security: must be a map",
			"pre-vote: must be true or false"}},
		{"TLS", "peer-transport-security: {cert-file: x, allowed-cn: y}\nclient-transport-security: {allowed-cn: [x]}\n",
			[]string{"--client-cert-allowed-cn needs --client-cert-auth",
				"--peer-cert-file needs --peer-key-file", "--peer-cert-allowed-cn needs --peer-client-cert-auth"}},
		{"discovery", "discovery-config: {token: x}\n", []string{"discovery-config: write discovery-token"}},
		{"a map where a text belongs", "name: {a: b}\n", []string{"name: must be a single value or a list"}},
		{"a list of numbers", "cors: [1]\n", []string{"cors: must be a list of texts"}},
		{"a fraction of a nanosecond", "grpc-keepalive-timeout: 1.5\n", []string{"must be a duration"}},
		{"a key twice", "name: a\nname: b\n", []string{`key "name" already set in map`}},
		{"no map", "- a\n", []string{"must be a map of settings"}},
		{"no YAML", "a: b: c\n", []string{"mapping values are not allowed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, []string{"--config-file=" + writeFile(t, row.content)})
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, which lacks %q", err, want)
				}
			}
		})
	}
	_, err := load(t, []string{"--config-file=absent.yml"})
	want := "--config-file absent.yml cannot be read: no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("an absent file: got %v, want %q", err, want)
	}
}

// Ensure that what is printed can be read again and means the same.
func TestConfig_WriteYAML_roundTrip(t *testing.T) {
	c := mustLoad(t, []string{"--name=m1", "--heartbeat-interval=50", "--listen-client-urls=http://127.0.0.1:1",
		"--cors=http://a,http://b", "--feature-gates=LeaseCheckpoint=true", "--snapshot-count=5",
		"--auto-compaction-retention=1h", "--quota-backend-bytes=-1", "--socket-reuse-address", "--auth-token-ttl=9"})
	var first, second bytes.Buffer
	if err := c.WriteYAML(&first); err != nil {
		t.Fatal(err)
	}
	again := mustLoad(t, []string{"--config-file=" + writeFile(t, first.String())})
	if err := again.WriteYAML(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Errorf("printed:\n%s\nread and printed again:\n%s", &first, &second)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if the change is meant, run the test with -rewrite\ngot:\n%s", path, got)
	}
}

func TestWriteHelp_golden(t *testing.T) {
	var out bytes.Buffer
	config.WriteHelp(&out)
	golden(t, "help.txt", out.String())
}

func TestConfig_WriteYAML_golden(t *testing.T) {
	var out bytes.Buffer
	c := mustLoadHere(t, []string{"--name=m1"})
	if err := c.WriteYAML(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "m1.yml", out.String())
}

// mustLoadHere is mustLoad for tests that need the package's directory afterwards.
func mustLoadHere(t *testing.T, args []string) config.Config {
	t.Helper()
	c, err := config.Load(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Ensure that --version has the line that etcd's tools look for, after our own.
func TestWriteVersion(t *testing.T) {
	var out bytes.Buffer
	config.WriteVersion(&out)
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "quorate Version: ") || lines[1] != "etcd Version: 3.7.3" {
		t.Errorf("got %q", lines[:2])
	}
	for i, prefix := range []string{"Git SHA: ", "Go Version: ", "Go OS/Arch: "} {
		if !strings.HasPrefix(lines[2+i], prefix) {
			t.Errorf("line %d: got %q, want %q…", 2+i, lines[2+i], prefix)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"http://localhost:2379", "unix://a:1", "unix:/x", "http://[::1]:1", "a:b",
		"http://u@h:1", "uniX:/ #", "unix:///a%2Cb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := config.ParseURL(text)
		if err != nil {
			return
		}
		again, err := config.ParseURL(u.String())
		if err != nil || again != u {
			t.Errorf("%q reads as %q, which reads as %q, %v", text, u, again, err)
		}
		list, err := config.ParseURLs(u.String() + "," + u.String())
		if err != nil || !slices.Equal(list, []config.URL{u, u}) {
			t.Errorf("%q twice in a list reads as %q, %v", u, list, err)
		}
	})
}

// A configuration file is refused or read, never a panic; and what it is refused for is said in few words.
func FuzzLoad_file(f *testing.F) {
	for _, seed := range []string{
		"name: m1\nheartbeat-interval: 100\n", "client-transport-security:\n  cert-file: a\n", "{\"name\": 5}", "- a\n",
		"initial-cluster: m1=http://a:1,m1=http://b:1\n", "feature-gates: X=true\n", "listen-client-urls: unix://x\n",
		"a: &a [*a]\n", "log-outputs: [a, b]\npeer-delay: m2=3ms\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load([]string{"--config-file", path}, nil); err != nil && err.Error() == "" {
			t.Error("refused without a word")
		}
	})
}

// Ensure that a member takes the file that packages install, as it is without a warning, and with every line that is commented
// out in it.
func TestLoad_packaged(t *testing.T) {
	content, err := os.ReadFile("../../release/packaging/quorate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	setting := regexp.MustCompile(`(?m)^#((?:  )?[a-z-]+:)`)
	whole := setting.ReplaceAllString(string(content), "$1")
	if whole == string(content) {
		t.Error("no line is commented out")
	}
	// A member that joins founds nothing, and a path of TLS is that of no URL with http.
	whole = regexp.MustCompile(`(?m)^initial-cluster(-token)?:.*\n`).ReplaceAllString(whole, "")
	whole = strings.ReplaceAll(whole, "http://127.0.0.1:23", "https://127.0.0.1:23")
	for name, text := range map[string]string{"as it is": string(content), "whole": whole} {
		path := filepath.Join(t.TempDir(), "quorate.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load([]string{"--config-file", path}, nil)
		if err == nil {
			err = c.Validate()
		}
		if err != nil || name == "as it is" && len(c.Warnings) > 0 {
			t.Errorf("%s: %v, %q", name, err, c.Warnings)
		}
	}
}
