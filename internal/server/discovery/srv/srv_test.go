package srv_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/quorate/quorate/internal/server/discovery/srv"
	"github.com/quorate/quorate/internal/server/discovery/srv/srvtest"
)

// zone has three servers with TLS, two without under a service name of their own, and names that answer what is wrong.
func zone() srvtest.Zone {
	records := srvtest.Record
	return srvtest.Zone{
		SRV: map[string][]dnsmessage.SRVResource{
			"_etcd-server-ssl._tcp.quorate.test.": {records("m3.quorate.test.", 2380), records("m1.quorate.test.", 2380),
				records("m2.quorate.test.", 2380)},
			"_etcd-server-blue._tcp.quorate.test.": {records("m1.quorate.test.", 12380), records("m1.quorate.test.", 22380)},
			"_etcd-client._tcp.quorate.test.": {{Target: dnsmessage.MustNewName("m1.quorate.test."), Port: 2379, Priority: 1,
				Weight: 7}},
			"_etcd-server._tcp.port.test.":     {records("m1.quorate.test.", 0)},
			"_etcd-server._tcp.twice.test.":    {records("m1.quorate.test.", 1), records("m1.quorate.test.", 1)},
			"_etcd-server._tcp.both.test.":     {records("m1.quorate.test.", 1)},
			"_etcd-server-ssl._tcp.both.test.": {records("m1.quorate.test.", 1)},
			"_etcd-server._tcp.half.test.":     {records("m1.quorate.test.", 1)},
			"_etcd-client._tcp.half.test.":     {records("m1.quorate.test.", 1)},
		},
		A: map[string][4]byte{"m1.quorate.test.": {10, 0, 0, 1}, "m2.quorate.test.": {10, 0, 0, 2}, "m3.quorate.test.": {10, 0, 0, 3},
			"alias.quorate.test.": {10, 0, 0, 2}},
		Fail: map[string]dnsmessage.RCode{"_etcd-server-ssl._tcp.half.test.": dnsmessage.RCodeServerFailure,
			"_etcd-client-ssl._tcp.half.test.": dnsmessage.RCodeServerFailure,
			"_etcd-server._tcp.down.test.":     dnsmessage.RCodeServerFailure},
	}
}

func urls(records []srv.Record) string {
	var all []string
	for i := range records {
		all = append(all, records[i].URL())
	}
	return strings.Join(all, " ")
}

// Ensure that records are found by etcd's names, and that an answer that cannot be the whole truth is an error.
func TestLookup(t *testing.T) {
	resolver := zone().Serve(t)
	for _, row := range []struct {
		domain, service string
		kind            srv.Kind
		want, refusal   string
	}{
		{"quorate.test", "", srv.Servers,
			"https://m1.quorate.test:2380 https://m2.quorate.test:2380 https://m3.quorate.test:2380", ""},
		{"quorate.test", "blue", srv.Servers, "http://m1.quorate.test:12380 http://m1.quorate.test:22380", ""},
		{"quorate.test", "", srv.Clients, "http://m1.quorate.test:2379", ""},
		{"none.test", "", srv.Servers, "", "_etcd-server-ssl._tcp.none.test and _etcd-server._tcp.none.test: there are none"},
		{"quorate.test", "green", srv.Clients, "", "_etcd-client-green._tcp.quorate.test: there are none"},
		{"down.test", "", srv.Servers, "", "_etcd-server._tcp.down.test: lookup"},
		{"half.test", "", srv.Servers, "", "_etcd-server-ssl._tcp.half.test: lookup"},
		{"half.test", "", srv.Clients, "http://m1.quorate.test:1", ""},
		{"port.test", "", srv.Servers, "", `names "m1.quorate.test.", port 0`},
		{"twice.test", "", srv.Servers, "", "_etcd-server._tcp.twice.test names m1.quorate.test:1 twice"},
		{"both.test", "", srv.Servers, "", "both name m1.quorate.test:1"},
	} {
		found, err := srv.Lookup(t.Context(), srv.Query{Resolver: resolver, Domain: row.domain, Service: row.service}, row.kind)
		if got := urls(found); got != row.want || (err == nil) != (row.refusal == "") ||
			err != nil && !strings.Contains(err.Error(), row.refusal) {
			t.Errorf("%s %s %s: got %q, %v, want %q, %s", row.domain, row.service, row.kind, got, err, row.want, row.refusal)
		}
	}
	clients, err := srv.Lookup(t.Context(), srv.Query{Resolver: resolver, Domain: "quorate.test"}, srv.Clients)
	if err != nil || clients[0].Priority != 1 || clients[0].Weight != 7 {
		t.Errorf("got %+v, %v, want priority 1 and weight 7", clients, err)
	}
}

// answers is a resolver that believes everything.
type answers struct {
	*net.Resolver
	srv []*net.SRV
}

func (a answers) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", a.srv, nil
}

// Ensure that what no name can be, and more than a cluster needs, is refused with a short error.
func TestLookup_untrusted(t *testing.T) {
	for what, targets := range map[string][]string{
		"a URL": {"m1/../x"}, "nothing": {"."}, "two": {"m1,m2=http://evil"}, "a megabyte": {strings.Repeat("x", 1<<20)},
		"a line": {"a\nb"}, "many": strings.Split(strings.Repeat("a ", 257), " "),
	} {
		var a answers
		for i, target := range targets {
			a.srv = append(a.srv, &net.SRV{Target: target, Port: uint16(i + 1)})
		}
		found, err := srv.Lookup(t.Context(), srv.Query{Resolver: a, Domain: "quorate.test"}, srv.Servers)
		if err == nil || len(err.Error()) > 400 {
			t.Errorf("%s: got %v, %.400v, want a short error", what, found, err)
		}
	}
}

// Ensure that a member finds itself by its host's name or address, and is told why it does not.
func TestOwn(t *testing.T) {
	resolver := zone().Serve(t)
	records := []srv.Record{{Secure: true, Host: "m1.quorate.test", Port: 2380},
		{Secure: true, Host: "m2.quorate.test", Port: 2380},
		{Secure: true, Host: "m2.quorate.test", Port: 2381}, {Secure: true, Host: "gone.quorate.test", Port: 2382}}
	for _, row := range []struct {
		places  string
		want    int
		refusal error
	}{
		{"https://M1.quorate.test:2380", 0, nil},
		{"https://10.0.0.2:2380", 1, nil},
		{"https://alias.quorate.test:2381", 2, nil},
		{"https://gone.quorate.test:2382", 3, nil},
		{"https://10.0.0.9:2380 https://10.0.0.1:2380", 0, nil},
		{"http://10.0.0.1:2380", -1, srv.ErrScheme},
		{"https://10.0.0.1:2381", -1, srv.ErrNotNamed},
		{"https://nowhere.quorate.test:2380", -1, srv.ErrNotNamed},
		{"https://10.0.0.1:2380 https://10.0.0.2:2380", -1, srv.ErrTwice},
	} {
		var places []srv.Place
		for text := range strings.FieldsSeq(row.places) {
			scheme, address, _ := strings.Cut(text, "://")
			places = append(places, srv.Place{Secure: scheme == "https", Address: address})
		}
		if got, err := srv.Own(t.Context(), resolver, records, places); got != row.want || !errors.Is(err, row.refusal) {
			t.Errorf("%s: got %d, %v, want %d, %v", row.places, got, err, row.want, row.refusal)
		}
	}
	_, err := srv.Own(t.Context(), resolver, records, []srv.Place{{Secure: true, Address: "nowhere.quorate.test:2380"}})
	if !strings.Contains(fmt.Sprint(err), "lookup nowhere.quorate.test") {
		t.Errorf("got %v, want the name that could not be resolved", err)
	}
}
