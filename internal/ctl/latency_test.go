package ctl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// startSites starts members of one cluster, led by the first, that serve gRPC and metrics on one port, as servers do. They
// share no data.
func startSites(t *testing.T, metrics ...string) []*fakeMember {
	t.Helper()
	var sites []*fakeMember
	var members []*pb.Member
	for i, text := range metrics {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeMember{id: fakeID + uint64(i), address: l.Addr().String(), leases: map[int64]int64{}, leader: fakeID}
		calls := f.server()
		server := &http.Server{Protocols: &http.Protocols{}, Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
					calls.ServeHTTP(w, r)
				case r.URL.Path == "/metrics":
					fmt.Fprint(w, text)
				default:
					http.NotFound(w, r)
				}
			})}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		go server.Serve(l)
		t.Cleanup(func() { server.Close() })
		members = append(members, &pb.Member{ID: f.id, Name: fmt.Sprintf("m%d", i+1), ClientURLs: []string{"http://" + f.address}})
		sites = append(sites, f)
	}
	for _, f := range sites {
		f.members = members
	}
	return sites
}

var took = regexp.MustCompile(`\d+(\.\d+)? ms`)

// timeless replaces times, and the width that they had.
func timeless(text string) string {
	return regexp.MustCompile(` +`).ReplaceAllString(took.ReplaceAllString(text, "#"), " ")
}

// Ensure that every member is measured by one endpoint, with the routes of its puts, and that nothing is left behind.
func TestRun_latency(t *testing.T) {
	sites := startSites(t,
		"# TYPE quorate_peer_round_trip_seconds gauge\n"+
			`quorate_peer_round_trip_seconds{Remote="a2"} 0.0514`+"\n"+`quorate_peer_round_trip_seconds{Remote="a3"} 0`+"\n",
		`quorate_peer_round_trip_seconds{Remote="a1"} 0.2026`+"\n"+`quorate_peer_round_trip_seconds{Remote="ff"} 0.3`+"\n"+
			`quorate_peer_round_trip_seconds{Remote="a4"} 1e-03`+"\n", "", "")
	sites[1].routes = []string{"inferred", "leader", "inferred"}
	sites[2].learner = true
	sites[3].full = 2
	first := sites[0]
	first.run(t, "put", "quorate-latency/mine", "1")
	got := first.run(t, "latency", "--count=3")
	want := "MEMBER ROLE PUT-P50 PUT-P90 PUT-MAX GET-P50 GET-P90 GET-MAX PUTS-ANSWERED-BY\n" +
		"m1 leader # # # # # # -\n" +
		"m2 follower # # # # # # inferred 2, leader 1\n" +
		"m3 learner - - - - - - -\n" +
		"m4 follower # # # - - - -\n" +
		"m3 was skipped: a learner answers no reads and writes\n" +
		"m4 failed at put 3 of 3: mvcc: database space exceeded\n" +
		"\nround trips between the members, from each line's member to the column's:\n" +
		" m1 m2 m3 m4\nm1 - # - -\nm2 # - - #\nm3 - - - -\nm4 - - - -\n"
	if timeless(got.Out) != want || got.Status != command.StatusRefused || got.Err != "" {
		t.Errorf("got status %d, errors %q and\n%s\nwant status 1 and\n%s", got.Status, got.Err, timeless(got.Out), want)
	}
	if !strings.Contains(got.Out, "51.4 ms") || !strings.Contains(got.Out, "203 ms") || !strings.Contains(got.Out, "1.00 ms") {
		t.Errorf("the round trips are not those of the members:\n%s", got.Out)
	}
	first.run(t, "get", "", "--prefix", "--keys-only").Want(t, 0, "quorate-latency/mine\n", "")
	if n := len(first.events); n != 1+3+3 {
		t.Errorf("the first member saw %d events, want a put before, 3 puts and their deletion", n)
	}
}

// Ensure that machines get the same, and that requests may overlap.
func TestRun_latencyJSON(t *testing.T) {
	sites := startSites(t, `quorate_peer_round_trip_seconds{Remote="a2"} 0.05`+"\n", "")
	sites[0].routes = strings.Fields(strings.Repeat("leader ", 30))
	sites[1].learner = true
	got := sites[1].run(t, "latency", "--count=30", "--concurrency=7", "--prefix=x", "-o=json")
	type times struct {
		Count int
		P50   float64 `json:"p50_ms"`
		P90   float64 `json:"p90_ms"`
		Max   float64 `json:"max_ms"`
	}
	var rows []struct {
		Name, Role, Skipped string
		Put, Get            *times
		Routes              map[string]int     `json:"put_routes"`
		Trips               map[string]float64 `json:"round_trips_ms"`
	}
	if err := json.Unmarshal([]byte(got.Out), &rows); err != nil || got.Status != 0 || strings.Count(got.Out, "\n") != 1 {
		t.Fatalf("got %v from %+v", err, got)
	}
	for _, part := range []*times{rows[0].Put, rows[0].Get} {
		if part == nil || part.Count != 30 || part.P50 <= 0 || part.P50 > part.P90 || part.P90 > part.Max {
			t.Errorf("got %+v, want 30 with growing percentiles", part)
		}
	}
	if rows[0].Routes["leader"] != 30 || rows[0].Trips["m2"] != 50 || rows[0].Role != "leader" {
		t.Errorf("the leader: got %+v", rows[0])
	}
	if rows[1].Skipped == "" || rows[1].Put != nil || rows[1].Trips != nil {
		t.Errorf("the learner: got %+v", rows[1])
	}
	for _, e := range sites[0].events {
		if !strings.HasPrefix(string(e.Kv.Key), "x") {
			t.Errorf("wrote %q, which is not below the prefix", e.Kv.Key)
		}
	}
}

// Ensure that members which cannot be measured are told, and that the command fails for scripts.
func TestRun_latencyOfDisorder(t *testing.T) {
	f := startFake(t) // an etcd: no routes, no round trips
	f.members = append(f.members, &pb.Member{ID: 2, Name: "m2", ClientURLs: []string{"http://" + testnet.Address(t)}}, &pb.Member{ID: 3})
	got := f.run(t, "latency", "--count=1", "--timeout=500ms")
	want := "3 down - - - - - - -\nm1 leader # # # # # # -\nm2 down - - - - - - -\n3 was skipped: it is down: it was never started, or ended before " +
		"it could tell its client URLs\n" +
		"m2 was skipped: it is down: connection refused\n"
	if _, rows, _ := strings.Cut(timeless(got.Out), "\n"); rows != want || got.Status != command.StatusRefused {
		t.Errorf("got status %d and\n%s\nwant\n%s", got.Status, rows, want)
	}
	f.members, f.leader = f.members[:1], 0
	got = f.run(t, "latency", "--count=1")
	if !strings.Contains(got.Out, "m1 was skipped: it knows no leader") || got.Status != command.StatusRefused {
		t.Errorf("no leader: got %+v", got)
	}
	f.leader, f.mute = fakeID, true
	got = f.run(t, "latency", "--count=1", "--timeout=1m")
	if !strings.Contains(got.Out, "m1 failed at the first get: no answer within 1m0s") || got.Status != command.StatusRefused || len(f.events) != 2 {
		t.Errorf("mute: got %+v, %d events", got, len(f.events))
	}
}

// Ensure that leadership that moves meanwhile is told, and that an interrupted run still deletes its keys.
func TestRun_latencyDisturbed(t *testing.T) {
	sites := startSites(t, "", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := ctltest.NewLineCounter(2, func() { // told of the second member: the first is measured
		for _, f := range sites {
			f.mu.Lock()
			f.leader = fakeID + 1
			f.mu.Unlock()
		}
	})
	var out bytes.Buffer
	streams := command.Streams{Out: &out, Err: watched, Terminal: true, Environ: []string{"QUORATE_ENDPOINTS=" + sites[0].address}}
	if status := ctl.Run(ctx, []string{"latency", "--count=2"}, streams); status != 0 ||
		!strings.Contains(out.String(), "leadership moved to m2 meanwhile: measure again\n") ||
		watched.Text() != "measuring m1, 1 of 2\nmeasuring m2, 2 of 2\n" {
		t.Errorf("got status %d, %q, %q", status, out.String(), watched.Text())
	}
	before := len(sites[0].events)
	streams.Err = ctltest.NewLineCounter(2, cancel)
	if status := ctl.Run(ctx, []string{"latency", "--count=2", "--timeout=10s"}, streams); status != 130 {
		t.Errorf("interrupted: got status %d, want 130", status)
	}
	if n := len(sites[0].events) - before; n != 4 {
		t.Errorf("interrupted: %d events, want two puts and their deletion", n)
	}
}
