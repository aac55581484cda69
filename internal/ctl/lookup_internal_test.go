package ctl

import (
	"bytes"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/server/discovery/srv/srvtest"
)

func portOf(t *testing.T, address string) uint16 {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

// Ensure that the gateway uses, of the members that DNS names, those that show a certificate for the domain, and those that are
// down; and others only where it was told to trust DNS.
func TestGatewayFlags_targets_lookup(t *testing.T) {
	member := httptest.NewTLSServer(nil) // its certificate is for example.com
	defer member.Close()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: member.Certificate().Raw})
	if err := os.WriteFile(authority, block, 0o600); err != nil {
		t.Fatal(err)
	}
	up, down, clear := portOf(t, member.Listener.Addr().String()), portOf(t, testnet.Address(t)), portOf(t, testnet.Address(t))
	records := func(ports ...uint16) (out []dnsmessage.SRVResource) {
		for i, port := range ports {
			r := srvtest.Record("localhost.", port)
			r.Priority, r.Weight = uint16(i+1), 5
			out = append(out, r)
		}
		return out
	}
	resolver := srvtest.Zone{SRV: map[string][]dnsmessage.SRVResource{
		"_etcd-client-ssl._tcp.example.com.":  records(up, down),
		"_etcd-client._tcp.example.com.":      records(clear),
		"_etcd-client-ssl._tcp.quorate.test.": records(up),
		"_etcd-client._tcp.clear.test.":       records(clear),
		"_etcd-client._tcp.own.test.":         records(2379),
	}}.Serve(t)
	for _, row := range []struct {
		lookup        lookup
		want, refusal string
	}{
		{lookup: lookup{domain: "example.com", authority: authority}, want: addresses(up, down)},
		{lookup: lookup{domain: "example.com", insecure: true}, want: addresses(up, down, clear)},
		{lookup: lookup{domain: "quorate.test", authority: authority}, refusal: "none of [https://localhost:"},
		{lookup: lookup{domain: "quorate.test"}, refusal: "could be verified (the log says why)"},
		{lookup: lookup{domain: "clear.test"}, refusal: "none of [http://localhost:"},
		{lookup: lookup{domain: "clear.test", authority: "/none"}, refusal: "--trusted-ca-file: open /none"},
		{lookup: lookup{domain: "none.test"}, refusal: "--discovery-srv none.test: error querying DNS SRV records: "},
		{lookup: lookup{domain: "own.test", insecure: true}, refusal: "is where the gateway itself listens"},
		{want: "127.0.0.1:1"},
	} {
		var log bytes.Buffer
		row.lookup.authorityFlag = "trusted-ca-file"
		g := gatewayFlags{listen: ":2379", endpoints: []string{"http://127.0.0.1:1"}, retryDelay: 1, lookup: row.lookup,
			resolver: resolver}
		targets, err := g.targets(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
		var got []string
		for _, target := range targets {
			if got = append(got, target.Address); (target.Weight == 5) != (row.lookup.domain != "") {
				t.Errorf("%+v: got weight %d", row.lookup, target.Weight)
			}
		}
		if strings.Join(got, " ") != row.want || (err == nil) != (row.refusal == "") ||
			err != nil && !strings.Contains(err.Error(), row.refusal) {
			t.Errorf("%+v: got %v, %v, want %q, %q\n%s", row.lookup, got, err, row.want, row.refusal, log.String())
		}
	}
}

// addresses sorts as text, as the lookup does within each kind, where all hosts are the same.
func addresses(ports ...uint16) string {
	if len(ports) > 1 && ports[0] > ports[1] {
		ports[0], ports[1] = ports[1], ports[0]
	}
	var out []string
	for _, port := range ports {
		out = append(out, net.JoinHostPort("localhost", strconv.Itoa(int(port))))
	}
	return strings.Join(out, " ")
}
