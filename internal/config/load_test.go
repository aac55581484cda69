package config_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/config"
)

// load runs Load in an empty directory, so that no data directory of the developer's is seen.
func load(t *testing.T, args []string, environ ...string) (config.Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	return config.Load(args, environ)
}

func mustLoad(t *testing.T, args []string, environ ...string) config.Config {
	t.Helper()
	c, err := load(t, args, environ...)
	if err != nil {
		t.Fatalf("Load(%q): %v", args, err)
	}
	return c
}

// Ensure that a server started without flags has etcd's defaults.
func TestLoad_defaults(t *testing.T) {
	c := mustLoad(t, nil)
	checks := []struct {
		what      string
		got, want any
	}{
		{"name", c.Name, "default"},
		{"data dir", c.Storage.DataDir, "default.etcd"},
		{"heartbeat", c.Consensus.HeartbeatInterval, 100 * time.Millisecond},
		{"election", c.Consensus.ElectionTimeout, time.Second},
		{"election ticks", c.ElectionTicks(), 10},
		{"listen peer", c.Listen.PeerURLs[0].String(), "http://localhost:2380"},
		{"listen client", c.Listen.ClientURLs[0].String(), "http://localhost:2379"},
		{"advertise peer", c.Advertise.PeerURLs[0].String(), "http://localhost:2380"},
		{"advertise client", c.Advertise.ClientURLs[0].String(), "http://localhost:2379"},
		{"initial cluster", c.Bootstrap.InitialCluster[0].Name + "=" + c.Bootstrap.InitialCluster[0].PeerURLs[0].String(),
			"default=http://localhost:2380"},
		{"request bytes", c.Limits.MaxRequestBytes, 3 << 19},
		{"txn ops", c.Limits.MaxTxnOps, 128},
		{"streams", c.Limits.MaxConcurrentStreams, uint32(10_000)},
		{"learners", c.Consensus.MaxLearners, 1},
		{"snapshot rate", c.Storage.SnapshotSendRate, int64(64 << 20)},
		{"snapshot log", c.Storage.SnapshotLogBytes, 1 << 30},
		{"keepalive interval", c.Keepalive.Interval, 2 * time.Hour},
		{"progress", c.WatchProgressNotifyInterval, 10 * time.Minute},
		{"warn apply", c.Monitoring.WarningApplyDuration, 100 * time.Millisecond},
		{"batch limit", c.Compaction.BatchLimit, 1000},
		{"strict", c.Consensus.StrictReconfigCheck, true},
		{"pre-vote", c.Consensus.PreVote, true},
		{"leader lease", c.Consensus.LeaderLease, false},
		{"new cluster", c.NewCluster(), true},
		{"reported quota", c.ReportedQuota(), int64(2147483648)},
		{"warnings", len(c.Warnings), 0},
	}
	for _, check := range checks {
		if check.got != check.want {
			t.Errorf("%s: got %v, want %v", check.what, check.got, check.want)
		}
	}
	if _, limited := c.Quota(); limited {
		t.Error("the default quota limits the store, want no limit")
	}
}

// Ensure that each way of writing a flag is understood, and that the last one counts.
func TestLoad_flagForms(t *testing.T) {
	for _, args := range [][]string{
		{"--name", "m1"}, {"-name", "m1"}, {"--name=m1"}, {"-name=m1"}, {"--name=m0", "--name=m1"},
		{"--pre-vote", "--name", "m1"}, {"--name", "m1", "--"},
	} {
		if c := mustLoad(t, args); c.Name != "m1" {
			t.Errorf("%q: got name %q, want m1", args, c.Name)
		}
	}
	if c := mustLoad(t, []string{"--pre-vote=false", "--force-new-cluster", "--max-txn-ops=0x10"}); c.Consensus.PreVote ||
		!c.Bootstrap.ForceNewCluster || c.Limits.MaxTxnOps != 16 {
		t.Errorf("got pre-vote %v, force %v, ops %d; want false, true, 16", c.Consensus.PreVote,
			c.Bootstrap.ForceNewCluster, c.Limits.MaxTxnOps)
	}
}

// Ensure that units are etcd's: bare milliseconds and seconds, durations with their unit elsewhere.
func TestLoad_units(t *testing.T) {
	c := mustLoad(t, []string{"--heartbeat-interval=50", "--election-timeout=2s",
		"--watch-progress-notify-interval=5s"})
	if c.Consensus.HeartbeatInterval != 50*time.Millisecond || c.Consensus.ElectionTimeout != 2*time.Second ||
		c.WatchProgressNotifyInterval != 5*time.Second {
		t.Errorf("got %v %v %v", c.Consensus.HeartbeatInterval, c.Consensus.ElectionTimeout,
			c.WatchProgressNotifyInterval)
	}
}

// Ensure that a flag beats the environment, which beats the default, and that unknown variables in it only warn.
func TestLoad_environment(t *testing.T) {
	c := mustLoad(t, []string{"--max-learners=3"}, "ETCD_NAME=m7", "ETCD_MAX_LEARNERS=5", "ETCD_PORT=tcp://1.2.3.4:1",
		"ETCDCTL_API=3", "ETCD_DATA_DIR=")
	if c.Name != "m7" || c.Consensus.MaxLearners != 3 || c.Storage.DataDir != "m7.etcd" {
		t.Errorf("got name %q, learners %d, dir %q; want m7, 3, m7.etcd", c.Name, c.Consensus.MaxLearners,
			c.Storage.DataDir)
	}
	want := []string{
		"ETCD_MAX_LEARNERS is ignored because --max-learners is given",
		"unknown environment variable ETCD_PORT is ignored",
	}
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("got warnings %q, want %q", c.Warnings, want)
	}
	if _, err := load(t, nil, "ETCD_MAX_LEARNERS=many"); err == nil ||
		!strings.Contains(err.Error(), `invalid value "many" for ETCD_MAX_LEARNERS: must be a whole number`) {
		t.Errorf("got %v, want a fault that names the variable", err)
	}
}

// Ensure that a command line that cannot be read is answered in one line that helps.
func TestLoad_usageErrors(t *testing.T) {
	for _, row := range []struct {
		name, arg, want string
	}{
		{"a slip of the finger", "--heartbeat-intervall=5", "did you mean --heartbeat-interval?"},
		{"an old experimental flag", "--experimental-compaction-batch-limit=5", "etcd 3.7 calls it --compaction-batch"},
		{"an old experimental switch", "--experimental-initial-corrupt-check", "--feature-gates=InitialCorruptCheck=true"},
		{"something else entirely", "--frobnicate", "unknown flag --frobnicate; see quorate --help"},
		{"a missing value", "--name", "flag needs an argument: --name"},
		{"a key of an empty variable", "--encryption-key-file=", "--encryption-key-file is empty: give FILE, or leave the flag out"},
		{"a key service of an empty variable", "--encryption-kms=", "--encryption-kms is empty: give unix:///PATH"},
		{"a word", "start", `"start" is neither a flag nor a command`},
		{"a malformed number", "--max-txn-ops=x", `invalid value "x" for flag -max-txn-ops: must be a whole number`},
		{"a malformed switch", "--pre-vote=perhaps", "must be true or false"},
		{"a negative number", "--max-learners=-1", "must not be negative"},
		{"a malformed duration", "--grpc-keepalive-timeout=5", "must be a duration"},
		{"a malformed interval", "--heartbeat-interval=soon", "must be a number of milliseconds"},
		{"the phase that etcd's suite tries", "--v2-deprecation=not-yet",
			`invalid value "not-yet" for flag -v2-deprecation: invalid value "not-yet"`},
		{"a malformed idle flag", "--snapshot-count=x", "must be a whole number"},
		{"a URL without scheme", "--listen-client-urls=localhost:2379", "write http://localhost:2379"},
		{"a URL without port", "--listen-client-urls=http://localhost", "lacks a port"},
		{"a URL with a path", "--listen-client-urls=http://localhost:1/x", "says more than"},
		{"an unknown gate", "--feature-gates=Turbo=true", `unknown gate "Turbo"`},
		{"a gate without value", "--feature-gates=AllBeta", "is not GATE=true"},
		{"a cluster without names", "--initial-cluster=http://a:1", "is not NAME=URL"},
		{"a delay without unit", "--peer-delay=25", `"25" is no delay: write a time such as 25ms`},
		{"a delay of nobody", "--peer-delay==25ms", `"=25ms" is no delay`},
		{"a delay into the past", "--peer-delay=eu=-1ms", `"eu=-1ms" must not be negative`},
		{"two delays of one", "--peer-delay=eu=1ms,eu=2ms", "names eu twice"},
		{"two delays of all", "--peer-delay=1ms,2ms", "two times without a name"},
		{"an unknown state", "--initial-cluster-state=old", "choose one of new, existing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, []string{row.arg})
			var usage *config.UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("got %v, want a usage error", err)
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, row.want)
			}
		})
	}
}

func TestLoad_requests(t *testing.T) {
	for arg, want := range map[string]error{
		"--help": config.ErrHelp, "-h": config.ErrHelp, "--version": config.ErrVersion, "-version": config.ErrVersion,
	} {
		if _, err := load(t, []string{arg}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", arg, err, want)
		}
	}
}

// Ensure that what cannot be honoured is refused, and that writing out a default is not.
func TestLoad_refusals(t *testing.T) {
	for _, row := range []struct{ arg, want string }{
		{"--client-crl-file=a.pem", "--client-crl-file needs --client-cert-auth"},
		{"--discovery=https://example.com", "--discovery: this is etcd's v2 discovery; use --discovery-token"},
	} {
		_, err := load(t, []string{row.arg})
		var faults config.Faults
		if !errors.As(err, &faults) || len(faults) != 1 || !strings.HasPrefix(faults[0], row.want) {
			t.Errorf("%s: got %v, want %q", row.arg, err, row.want)
		}
	}
	mustLoad(t, []string{"--cert-file=", "--auto-tls=false", "--discovery-srv="})
}

// Ensure that etcd's settings without meaning here are accepted, and that a warning says so when they were changed.
func TestLoad_idle(t *testing.T) {
	c := mustLoad(t, []string{"--snapshot-count=10000", "--backend-batch-limit=7", "--max-snapshots=10",
		"--v2-deprecation=gone", "--snapshot-catchup-entries=1000"})
	if got := c.Compat("snapshot-catchup-entries"); got != "1000" {
		t.Errorf("got %q, want 1000", got)
	}
	if got := c.Compat("v2-deprecation"); got != "write-only" {
		t.Errorf("got phase %q, want the enforced default", got)
	}
	all := strings.Join(c.Warnings, "\n")
	for _, want := range []string{
		"--backend-batch-limit=7 is accepted for compatibility and has no effect",
		"--max-snapshots is deprecated in 3.6 and will be decommissioned in 3.8",
		"--v2-deprecation is deprecated and scheduled for removal in v3.8",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings lack %q:\n%s", want, all)
		}
	}
	if strings.Contains(all, "snapshot-count") {
		t.Errorf("a default that was written out is warned of:\n%s", all)
	}
}

// Ensure that settings which follow from others do so.
func TestLoad_derived(t *testing.T) {
	for _, row := range []struct {
		name          string
		args          []string
		peers, client string
		cluster       string
	}{
		{"a name alone founds a cluster under that name", []string{"--name=m1"},
			"http://localhost:2380", "http://localhost:2379", "m1=http://localhost:2380"},
		{"what is listened on is advertised",
			[]string{"--listen-peer-urls=http://127.0.0.1:80", "--listen-client-urls=http://127.0.0.1:81"},
			"http://127.0.0.1:80", "http://127.0.0.1:81", "default=http://127.0.0.1:80"},
		{"a wildcard is advertised as localhost to peers",
			[]string{"--listen-peer-urls=http://0.0.0.0:80"},
			"http://localhost:80", "http://localhost:2379", "default=http://localhost:80"},
		{"etcd's default URL stays where the founding names it",
			[]string{"--listen-peer-urls=http://127.0.0.1:80", "--initial-cluster=default=http://localhost:2380"},
			"http://localhost:2380", "http://localhost:2379", "default=http://localhost:2380"},
		{"sockets are URLs too", []string{"--name=e1", "--listen-peer-urls=unix://etcd.unix:1",
			"--initial-advertise-peer-urls=unix://etcd.unix:1", "--initial-cluster=e1=unix://etcd.unix:1"},
			"unix://etcd.unix:1", "http://localhost:2379", "e1=unix://etcd.unix:1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := mustLoad(t, row.args)
			m := c.Bootstrap.InitialCluster[0]
			if got := c.Advertise.PeerURLs[0].String(); got != row.peers {
				t.Errorf("peer URL: got %s, want %s", got, row.peers)
			}
			if got := c.Advertise.ClientURLs[0].String(); got != row.client {
				t.Errorf("client URL: got %s, want %s", got, row.client)
			}
			if got := m.Name + "=" + m.PeerURLs[0].String(); got != row.cluster {
				t.Errorf("cluster: got %s, want %s", got, row.cluster)
			}
		})
	}
}

// Ensure that members keep the order in which they were named, and may have several URLs.
func TestLoad_initialCluster(t *testing.T) {
	c := mustLoad(t, []string{"--name=b", "--initial-advertise-peer-urls=http://2.2.2.2:1,http://2.2.2.3:1",
		"--initial-cluster=c=http://3.3.3.3:1,b=http://2.2.2.3:1,a=http://1.1.1.1:1,b=http://2.2.2.2:1"})
	var got []string
	for _, m := range c.Bootstrap.InitialCluster {
		got = append(got, m.Name)
	}
	if !slices.Equal(got, []string{"c", "b", "a"}) || len(c.Bootstrap.InitialCluster[1].PeerURLs) != 2 {
		t.Errorf("got %v", c.Bootstrap.InitialCluster)
	}
}

// Ensure that founding settings no longer matter once the member has data: manifests carry them along for years.
func TestLoad_livedBefore(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--name=m1", "--data-dir=" + dir, "--initial-cluster=m2=http://localhost:2380"}
	if _, err := config.Load(args, nil); err == nil {
		t.Fatal("an empty directory: got no error, want one")
	}
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(args, nil); err == nil {
		t.Fatal("a fresh volume: got no error, want one")
	}
	if err := os.WriteFile(filepath.Join(dir, "wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(args, nil)
	if err != nil || len(c.Warnings) != 1 {
		t.Fatalf("a directory in use: got %v and warnings %q, want one warning", err, c.Warnings)
	}
	if c.ValidateBootstrap() == nil {
		t.Error("a bootstrap after all: got no error, want one")
	}
}

// Ensure that a member which joins others by an address that only this machine knows is told so, and that a member with
// data keeps its flags without harm.
// Ensure that only a member which others can reach, and of which nothing says where it belongs, is one that would found a cluster
// by mistake.
func TestConfig_AloneByDefault(t *testing.T) {
	for _, row := range []struct {
		args string
		want bool
	}{
		{"", false},
		{"--listen-client-urls=http://10.0.0.1:2379 --advertise-client-urls=http://10.0.0.1:2379", false},
		{"--listen-peer-urls=http://127.0.0.1:2380", false},
		{"--initial-advertise-peer-urls=http://localhost:2380", false},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380", true},
		{"--initial-advertise-peer-urls=http://m1.example.com:2380 --initial-cluster-state=new", true},
		{"--listen-peer-urls=http://10.0.0.1:2380", true},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380 --initial-cluster=default=http://10.0.0.1:2380", false},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380 --initial-cluster-state=existing", false},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380 --join=http://10.0.0.2:2380", false},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380 --discovery-token=a --discovery-endpoints=http://10.0.0.2:2379", false},
		{"--initial-advertise-peer-urls=http://10.0.0.1:2380 --discovery-srv=example.com", false},
	} {
		if c := mustLoad(t, strings.Fields(row.args)); c.AloneByDefault() != row.want {
			t.Errorf("%s: got %v, want %v", row.args, !row.want, row.want)
		}
	}
}

func TestLoad_join(t *testing.T) {
	for _, row := range []struct {
		args string
		want bool
	}{
		{"--join=http://10.0.0.1:2380", true},
		{"--join=http://10.0.0.1:2380 --initial-advertise-peer-urls=http://0.0.0.0:2380", true},
		{"--join=http://10.0.0.1:2380 --initial-advertise-peer-urls=http://10.0.0.2:2380", false},
		{"--join=http://127.0.0.1:2381", false},
	} {
		c := mustLoad(t, append(strings.Fields(row.args), "--name=m4"))
		if got := strings.Contains(strings.Join(c.Warnings, "\n"), "cannot reach"); got != row.want {
			t.Errorf("%s: warned: %v, want %v: %q", row.args, got, row.want, c.Warnings)
		}
		if c.NewCluster() {
			t.Errorf("%s: founds a cluster", row.args)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustLoad(t, []string{"--data-dir", dir, "--join=http://10.0.0.1:2380", "--initial-cluster-state=new"})

	// A printed configuration may be loaded.
	joins := mustLoad(t, []string{"--name=m4", "--join=http://10.0.0.1:2380", "--join-learner"})
	var printed bytes.Buffer
	if err := joins.WriteYAML(&printed); err != nil {
		t.Fatal(err)
	}
	again := mustLoad(t, []string{"--config-file", writeFile(t, printed.String())})
	if !slices.Equal(again.Bootstrap.Join, joins.Bootstrap.Join) || !again.Bootstrap.JoinLearner || again.NewCluster() {
		t.Errorf("printed and loaded again: %+v", again)
	}
}
