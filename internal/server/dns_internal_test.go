package server

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/server/discovery/srv/srvtest"
)

// foundByDNS is what a member with these flags would found.
func foundByDNS(t *testing.T, zone srvtest.Zone, args ...string) (founding, error) {
	t.Helper()
	c, err := config.Load(append(args, "--discovery-srv=quorate.test", "--data-dir="+t.TempDir()), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bootstrap{cfg: &c, logger: slog.New(slog.DiscardHandler), resolver: zone.Serve(t)}
	if err := b.findInDNS(t.Context()); err != nil {
		return founding{}, err
	}
	return b.found()
}

// Ensure that members that DNS names found one cluster, each as itself, with the ids that --initial-cluster gives.
func TestBootstrap_findInDNS(t *testing.T) {
	zone := srvtest.Zone{SRV: map[string][]dnsmessage.SRVResource{}, A: map[string][4]byte{}}
	var list []string
	for i := range 3 {
		host := fmt.Sprintf("n%d.quorate.test", i+1)
		zone.SRV["_etcd-server._tcp.quorate.test."] = append(zone.SRV["_etcd-server._tcp.quorate.test."],
			srvtest.Record(host+".", 2380))
		zone.A[host+"."] = [4]byte{10, 0, 0, byte(i + 1)}
		list = append(list, fmt.Sprintf("m%d=http://%s:2380", i+1, host))
	}
	var first founding
	seen := map[consensus.MemberID]bool{}
	for i := range 3 {
		f, err := foundByDNS(t, zone, fmt.Sprintf("--name=m%d", i+1),
			fmt.Sprintf("--initial-advertise-peer-urls=http://10.0.0.%d:2380", i+1))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = f
		}
		if f.cluster != first.cluster || !reflect.DeepEqual(f.config, first.config) || seen[f.self] {
			t.Errorf("m%d: got %+v, and m1 %+v", i+1, f, first)
		}
		seen[f.self] = true
	}
	c, err := config.Load([]string{"--name=m1", "--initial-advertise-peer-urls=http://n1.quorate.test:2380",
		"--initial-cluster=" + strings.Join(list, ","), "--data-dir=" + t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if listed, err := found(&c); err != nil || listed.cluster != first.cluster || !seen[listed.self] {
		t.Errorf("got cluster %v, %v by --initial-cluster, and %v by DNS", listed.cluster, err, first.cluster)
	}
	for arg, want := range map[string]string{
		"--initial-advertise-peer-urls=http://10.0.0.4:2380": "cannot find local etcd member in SRV records: add a record for " +
			"it, or set --initial-advertise-peer-urls (http://10.0.0.4:2380) to one of http://n1.quorate.test:2380,",
		"--initial-advertise-peer-urls=https://10.0.0.1:2380": "scheme mismatch",
		"--discovery-srv-name=blue":                           "_etcd-server-blue._tcp.quorate.test: there are none",
	} {
		if _, err := foundByDNS(t, zone, arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", arg, err, want)
		}
	}
}
