package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

func TestConfig_Validate(t *testing.T) {
	for _, row := range []struct {
		name string
		args string
		want []string // beginnings of all faults, in order; none: the configuration is fine
	}{
		{"three members", "--name=m1 --initial-cluster=m1=http://localhost:2380,m2=http://b:1,m3=http://c:1", nil},
		{"a host name and its address may be the same place",
			"--initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster=default=http://localhost:2380", nil},
		{"ports chosen by the system", "--listen-client-urls=http://0.0.0.0:0 --advertise-client-urls=http://0.0.0.0:0 " +
			"--listen-peer-urls=http://127.0.0.1:0 --initial-advertise-peer-urls=http://localhost:2380", nil},
		{"this member is not in the cluster", "--name=m4 --initial-cluster=m1=http://a:1,m2=http://b:1",
			[]string{"--initial-cluster does not name this member: add m4=http://localhost:2380, or set --name to one " +
				"of m1, m2"}},
		{"another address than the cluster knows", "--initial-cluster=default=http://10.0.0.1:2390",
			[]string{"--initial-cluster has http://10.0.0.1:2390 for default, but"}},
		{"one address for two members", "--initial-cluster=default=http://localhost:2380,m2=http://localhost:2380",
			[]string{"--initial-cluster gives http://localhost:2380 to both default and m2"}},
		{"one address twice", "--initial-cluster=default=http://localhost:2380,default=http://localhost:2380",
			[]string{"--initial-cluster gives http://localhost:2380 to default twice", "--initial-cluster has"}},
		{"a repeated URL", "--listen-client-urls=http://127.0.0.1:1,http://127.0.0.1:1 " +
			"--advertise-client-urls=http://127.0.0.1:1",
			[]string{"--listen-client-urls names http://127.0.0.1:1 twice"}},
		{"clients and peers on one address", "--listen-client-urls=http://127.0.0.1:2380",
			[]string{"--listen-peer-urls http://localhost:2380 and --listen-client-urls http://127.0.0.1:2380 are the " +
				"same address"}},
		{"a wildcard covers every address", "--listen-metrics-urls=http://0.0.0.0:2379",
			[]string{"--listen-client-urls http://localhost:2379 and --listen-metrics-urls http://0.0.0.0:2379 are"}},
		{"listening on a name", "--listen-client-urls=http://example.com:1 --advertise-client-urls=http://example.com:1",
			[]string{"--listen-client-urls http://example.com:1 must name an IP address"}},
		{"nobody could tell clients where to connect", "--listen-client-urls=http://0.0.0.0:2379",
			[]string{"--advertise-client-urls is required"}},
		{"an advertised URL without host", "--advertise-client-urls=http://:2379",
			[]string{"--advertise-client-urls http://:2379 lacks a host"}},
		{"clients and peers at one advertised address", "--initial-advertise-peer-urls=http://127.0.0.1:2379 " +
			"--initial-cluster=default=http://127.0.0.1:2379",
			[]string{"--initial-advertise-peer-urls http://127.0.0.1:2379 and --advertise-client-urls http://localhost:2379 are " +
				"the same address"}},
		{"joining at the client URL", "--join=http://a:1 --initial-advertise-peer-urls=http://d:1 --advertise-client-urls=http://d:1",
			[]string{"--initial-advertise-peer-urls http://d:1 and --advertise-client-urls http://d:1 are the same address"}},
		{"one host, two ports", "--join=http://a:1 --initial-advertise-peer-urls=http://d:1 --advertise-client-urls=http://d:2", nil},
		{"impatient elections", "--heartbeat-interval=300",
			[]string{"--election-timeout (1s) must be at least 5 times --heartbeat-interval (300ms)"}},
		{"no heartbeat", "--heartbeat-interval=0", []string{"--heartbeat-interval must be more than 0"}},
		{"a long delay", "--commit-delay=101ms", []string{"--commit-delay (101ms) must be at most --heartbeat-interval (100ms)"}},
		{"short heartbeats", "--heartbeat-interval=1 --election-timeout=10", nil},
		{"endless elections", "--election-timeout=60000", []string{"--election-timeout (1m0s) must be at most 50s"}},
		{"retention in hours", "--auto-compaction-retention=1", nil},
		{"retention of time by revision", "--auto-compaction-mode=revision --auto-compaction-retention=5m",
			[]string{`--auto-compaction-retention "5m" must be`}},
		{"negative retention", "--auto-compaction-retention=-1h",
			[]string{`--auto-compaction-retention "-1h" must not be negative`}},
		{"a gate without the gate below", "--feature-gates=LeaseCheckpointPersist=true",
			[]string{"--feature-gates: LeaseCheckpointPersist needs LeaseCheckpoint"}},
		{"both gates", "--feature-gates=LeaseCheckpointPersist=true,LeaseCheckpoint=true", nil},
		{"the journal", "--log-outputs=systemd/journal", nil},
		{"default among others", "--log-outputs=default,stdout", []string{"--log-outputs: 'default' cannot"}},
		{"log and data in one directory", "--wal-dir=x/../d --data-dir=d", []string{"--wal-dir and --data-dir must"}},
		{"a name that cannot be written", "--name=a=b", []string{`--name "a=b" must not contain`}},
		{"a name that moves the cursor", "--name=a\x1b[2J", []string{`--name "a\x1b[2J" must be printable text`}},
		{"a name that turns the order", "--name=a\u202eb", []string{`--name "a\u202eb" must be printable text`}},
		{"a name of bytes", "--name=a\xff", []string{`--name "a\xff" must be printable text`}},
		{"the longest name of a node", "--name=" + strings.Repeat("a", 255), nil},
		{"a long name", "--name=" + strings.Repeat("a", 256), []string{"--name must have at most 255 bytes"}},
		{"a name of people", "--name=größer日本", nil},
		{"a member of a name that cannot be printed", "--name=m1 --initial-cluster=m1=http://localhost:2380,b\x07=http://b:1",
			[]string{`--initial-cluster: name "b\a" must be printable text`}},

		{"joining by an address", "--name=m4 --join=http://a:1,http://b:1 --initial-advertise-peer-urls=http://d:1", nil},
		{"joining by a list that has this member too", "--join=http://localhost:2380,http://b:1", nil},
		{"joining itself", "--join=http://localhost:2380", []string{"--join http://localhost:2380 names only this member"}},
		{"joining and naming the members", "--join=http://a:1 --initial-cluster=default=http://localhost:2380",
			[]string{"--join and --initial-cluster exclude each other"}},
		{"joining and founding", "--join=http://a:1 --initial-cluster-state=new",
			[]string{"--join and --initial-cluster-state=new exclude"}},
		{"a line for all, of a founder", "--join=http://a:1 --initial-cluster-state=new --join-token=t " +
			"--initial-cluster=default=http://localhost:2380,m9=http://a:1", nil},
		{"a line for all, of a founder at other URLs", "--join=http://a:1 --initial-cluster-state=new " +
			"--initial-cluster=default=http://b:2380,m9=http://a:1", []string{"--initial-cluster has http://b:2380 for default"}},
		{"a line for all, of one that joins", "--join=http://a:1 --initial-cluster-state=new --initial-cluster=m9=http://a:1", nil},
		{"a line for all, and an existing cluster", "--join=http://a:1 --initial-cluster-state=existing " +
			"--initial-cluster=m9=http://a:1", []string{"--join and --initial-cluster exclude each other"}},
		{"taking a place as learner", "--join=http://a:1 --join-learner --replaces=m1",
			[]string{"--join-learner and --replaces exclude"}},
		{"taking a place without joining", "--replaces=m1", []string{"--replaces needs --join"}},
		{"learning without joining", "--join-learner", []string{"--join-learner needs --join"}},
		{"joining by a word", "--name=a,b --join=http://a:1", []string{"--name"}},

		{"a zone and care", "--zone=rack-7 --auto-care=auto --auto-care-dead-after=5s --auto-care-voters=5", nil},
		{"care that cannot tell slow from dead", "--auto-care=suggest --auto-care-dead-after=4s",
			[]string{"--auto-care-dead-after (4s) must be at least 5 times --election-timeout (1s)"}},
		{"a zone that cannot be shown", "--zone=r\x017", []string{`--zone "r\x017" must be a name`}},
		{"no care, so whatever", "--auto-care-dead-after=0s", nil},

		{"members that are far away", "--peer-delay=250ms", nil},
		{"members that no vote reaches in time", "--peer-delay=251ms",
			[]string{"--peer-delay (251ms) is too long for --election-timeout (1s), in which votes go to and fro: set that to at least 1.004s"}},
		{"a member that is far from itself", "--name=m1 --peer-delay=m1=1ms", []string{"--peer-delay names this member itself, m1"}},

		{"discovery without endpoints", "--discovery-token=t", []string{"--discovery-token and --discovery-endpoints need"}},
		{"discovery, and a list of members", "--discovery-token=t/u --discovery-endpoints=a:1 --initial-cluster=default=http://a:1 " +
			"--discovery-cert=x --discovery-password=p", []string{"--discovery-token must not contain a slash",
			"--discovery-token and --initial-cluster exclude", "--discovery-cert and --discovery-key need",
			"--discovery-password needs --discovery-user"}},
		{"discovery by DNS without a domain", "--discovery-srv-name=n --initial-cluster=default=http://a:1",
			[]string{"--discovery-srv-name needs --discovery-srv", "--discovery-srv and --initial-cluster exclude"}},
		{"discovery in two ways", "--discovery-srv=d --discovery-token=t --discovery-endpoints=a:1",
			[]string{"--discovery-token and --discovery-srv exclude"}},
		{"discovery by DNS, and a cluster to join", "--discovery-srv=d --join=http://a:1",
			[]string{"--join and --discovery-srv exclude"}},
		{"discovery, and a cluster to join", "--discovery-token=t --discovery-endpoints=a:1 --join=http://a:1",
			[]string{"--join and --discovery-token exclude"}},
		{"no name", "--name=", []string{"--name must not be empty"}},
		{"everything at once", "--heartbeat-interval=0 --peer-crl-file=x --max-learners=2 --wal-dir=d --data-dir=d " +
			"--initial-cluster=m9=http://a:1", []string{
			"--wal-dir and", "--peer-crl-file needs --peer-client-cert-auth", "--heartbeat-interval must", "--initial-cluster does not"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := load(t, strings.Fields(row.args))
			var faults config.Faults
			if err != nil && !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			if len(faults) != len(row.want) {
				t.Fatalf("got %d faults %q, want %d: %q", len(faults), faults, len(row.want), row.want)
			}
			for i, want := range row.want {
				if !strings.HasPrefix(faults[i], want) {
					t.Errorf("fault %d: got %q, want %q…", i, faults[i], want)
				}
			}
		})
	}
}

func TestFaults_Error(t *testing.T) {
	if got := (config.Faults{"a"}).Error(); got != "a" {
		t.Errorf("one fault: got %q", got)
	}
	want := "the configuration has two faults: (1) a (2) b"
	if got := (config.Faults{"a", "b"}).Error(); got != want {
		t.Errorf("two faults: got %q, want %q", got, want)
	}
}

func TestFeatureGates_Enabled(t *testing.T) {
	for _, row := range []struct {
		arg, gate string
		want      bool
	}{
		{"", "FastLeaseKeepAlive", true},
		{"", "LeaseCheckpoint", false},
		{"", "Unheard", false},
		{"LeaseCheckpoint=true", "LeaseCheckpoint", true},
		{"AllAlpha=true", "LeaseCheckpoint", true},
		{"AllAlpha=true,PriorityRequest=false", "PriorityRequest", false},
		{"AllBeta=false", "FastLeaseKeepAlive", false},
		{"AllBeta=false", "LeaseCheckpoint", false},
		{"FastLeaseKeepAlive=true,FastLeaseKeepAlive=false", "FastLeaseKeepAlive", false},
	} {
		c := mustLoad(t, []string{"--feature-gates=" + row.arg})
		if got := c.FeatureGates.Enabled(row.gate); got != row.want {
			t.Errorf("%q: %s: got %v, want %v", row.arg, row.gate, got, row.want)
		}
	}
}
