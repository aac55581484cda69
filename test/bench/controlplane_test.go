package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseControlPlane(t *testing.T) {
	given := []string{"--server", "etcd=/bin/etcd", "--server", "ours=/bin/ours", "--dir", "data"}
	p, err := parseControlPlane(append(given, "--flags", "ours=--a=1,--b", "--nodes", "500", "--values", "random"))
	if err != nil {
		t.Fatal(err)
	}
	if p.load.Pods != 1000 || p.rate < 109.9 || p.rate > 110.1 || !p.load.Random || p.load.CompactEvery != 10*time.Second {
		t.Errorf("got %+v", p)
	}
	if got := strings.Join(p.servers[1].Flags, " "); got != "--a=1 --b" || len(p.servers[0].Flags) != 0 {
		t.Errorf("flags of servers: got %q and %q", p.servers[0].Flags, got)
	}
	for _, row := range []struct{ flags, want string }{
		{"--nodes 9", "at least 10 nodes"},
		{"--pods 19", "20 pods"},
		{"--rate -1", "not negative"},
		{"--pod-bytes 100", "pods of 1024 to"},
		{"--pod-bytes 2000000", "pods of 1024 to"},
		{"--event-ttl 1s", "events for 2s at least"},
		{"--compact-every 0", "times that are not zero"},
		{"--list-every 0", "times that are not zero"},
		{"--duration 0", "times that are not zero"},
		{"--values zeros", `no --values "zeros"`},
		{"--rounds 0", "at least one round"},
		{"--kill-leader --find-max", "only one of"},
		{"--kill-leader --replace-member", "only one of"},
		{"more", "nothing but flags"},
	} {
		_, err := parseControlPlane(append(given, strings.Fields(row.flags)...))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.flags, err, row.want)
		}
	}
}
