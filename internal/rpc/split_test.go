package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/server/tracing"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

// trouble is how long a disk, or a link in one direction, takes in a test that makes it slow: far more than anything else does.
const trouble = 600 * time.Millisecond

// site is a real member in a cluster of this process, with a disk and links that a test can make slow.
type site struct {
	*member.Member
	id      consensus.MemberID
	name    string
	listen  net.Listener
	peers   *transport.Transport
	disk    atomic.Int64 // nanoseconds that each write to its log takes longer
	links   sync.Map     // consensus.MemberID of the other end -> time.Duration in each direction
	stopped atomic.Bool
}

func (s *site) write(time.Duration) {
	if slow := time.Duration(s.disk.Load()); slow > 0 {
		<-time.After(slow)
	}
}

// distant receives late what comes by a slow link.
type distant struct {
	transport.Handler
	s *site
}

// Receive implements transport.Handler.
func (d distant) Receive(messages []consensus.Message) {
	takes, slow := d.s.links.Load(messages[0].From)
	if !slow || takes == time.Duration(0) {
		d.Handler.Receive(messages)
		return
	}
	time.AfterFunc(takes.(time.Duration), func() {
		if !d.s.stopped.Load() {
			d.Handler.Receive(messages)
		}
	})
}

// join makes the link between two sites slow.
func join(a, b *site, takes time.Duration) {
	a.links.Store(b.id, takes)
	b.links.Store(a.id, takes)
}

func (s *site) stop(t *testing.T) {
	t.Helper()
	if s.stopped.Swap(true) {
		return
	}
	if err := errors.Join(s.peers.Close(), s.Stop()); err != nil {
		t.Errorf("stop %s: %v", s.name, err)
	}
}

// startSites runs so many members, and returns them with their leader first.
func startSites(t *testing.T, count int, fast offers.Setting) []*site {
	t.Helper()
	var sites []*site
	var config consensus.Config
	for i := range count {
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &site{id: consensus.MemberID(i + 1), name: fmt.Sprintf("site%d", i+1), listen: listen}
		sites = append(sites, s)
		config.Voters = append(config.Voters, s.id)
		config.Members = append(config.Members, consensus.Member{
			ID: s.id, Name: s.name, PeerURLs: []string{"http://" + listen.Addr().String()},
		})
	}
	for _, s := range sites {
		s.start(t, config, fast)
	}
	ctx := waitContext(t)
	for {
		for i, s := range sites {
			changed := s.LeaderChanged()
			if s.Leader() == consensus.NoMember {
				select {
				case <-changed:
				case <-ctx.Done():
					t.Fatal("no leader")
				}
			}
			if s.Leader() == s.id {
				sites[0], sites[i] = sites[i], sites[0]
				return sites
			}
		}
	}
}

func (s *site) start(t *testing.T, config consensus.Config, fast offers.Setting) {
	t.Helper()
	fs, logger := filestest.NewMem(), slog.New(slog.DiscardHandler)
	options := datadir.Options{FS: fs, Dir: "data", Logger: logger, OpenEngine: func(dir string) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: fs, Dir: dir})
	}}
	own := wal.Identity{Cluster: testCluster, Member: s.id, Storage: wal.StorageID{1, 15: byte(s.id)}}
	if err := datadir.Create(options, own, config); err != nil {
		t.Fatal(err)
	}
	data, err := datadir.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	core := raft.Defaults(s.id)
	core.Cluster, core.Seed = testCluster, uint64(s.id)
	core.ElectionTicks, core.HeartbeatTicks = 600, 4 // no trouble moves the leadership
	s.Member = member.New(member.Options{
		Data: data, Raft: core, TickInterval: 5 * time.Millisecond, RequestTimeout: testWait, MaxRequestBytes: 1 << 20,
		Clock: env.WallClock{}, Logger: logger, Synced: s.write, FastPath: fast,
	})
	s.peers, err = transport.New(transport.Options{
		Self: identity.Claim{Member: s.id, Cluster: testCluster}, OpenMethods: member.OpenMethods(), MovedMethods: member.MovedMethods(),
		Handler: distant{s.PeerHandler(), s}, Listeners: []net.Listener{s.listen}, Logger: logger,
	})
	if err == nil {
		err = s.Start(s.peers)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
}

// recorder traces the calls of one test, and keeps the log.
type recorder struct {
	mu    sync.Mutex
	spans []tracing.Span
	log   bytes.Buffer
}

// TraceOf implements gate.Tracer: all calls are recorded.
func (*recorder) TraceOf(context.Context) string { return "0af7651916cd43dd8448eb211c80319c" }

// Inside implements gate.Tracer.
func (r *recorder) Inside(_ context.Context, spans []tracing.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = spans
}

// Write implements io.Writer, for the log.
func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

// named returns which member, and which part of it, the span of the network names.
func (r *recorder) named() (of, part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, span := range r.spans {
		for _, a := range span.Attributes {
			switch a.Key {
			case "quorate.waited_for":
				of = a.Value
			case "quorate.waited_for.part":
				part = a.Value
			}
		}
	}
	return of, part
}

// took returns how long the spans of a name took together.
func (r *recorder) took(name string) (sum time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var add func(spans []tracing.Span)
	add = func(spans []tracing.Span) {
		for _, span := range spans {
			if span.Name == name {
				sum += span.Ended.Sub(span.Begun)
			}
			add(span.Inside)
		}
	}
	add(r.spans)
	return sum
}

// slow returns the line of the log of a slow request.
func (r *recorder) slow(t *testing.T) map[string]any {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if fields["msg"] == "request stats" {
			return fields
		}
	}
	t.Fatalf("no line of a slow request: %q", r.log.String())
	return nil
}

// callAt makes a call at a site, with services of its own, and returns what is recorded of it.
func callAt(t *testing.T, s *site, call func(ctx context.Context, kv pb.KVClient) error) *recorder {
	t.Helper()
	r := &recorder{}
	server := serve(t, s.Member, func(o *rpc.Options) {
		o.SlowRequest, o.Tracer, o.Logger = trouble/2, r, slog.New(slog.NewJSONHandler(r, nil))
	})
	if err := call(waitContext(t), pb.NewKVClient(server.conn(t))); err != nil {
		t.Fatal(err)
	}
	return r
}

func putSecret(ctx context.Context, kv pb.KVClient) error {
	_, err := kv.Put(ctx, &pb.PutRequest{Key: []byte("a secret key"), Value: []byte("a secret value")})
	return err
}

func getSecret(ctx context.Context, kv pb.KVClient) error {
	_, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte("a secret key")})
	return err
}

// waits says what a call must name.
func (r *recorder) waits(t *testing.T, what string, s *site, part, slowSpan string) {
	t.Helper()
	if of, of2 := r.named(); of != s.name || of2 != part {
		t.Errorf("%s: the span names the %q of %q, want the %q of %q: %+v", what, of2, of, part, s.name, r.spans)
	}
	line := r.slow(t)
	if line["waited for"] != s.name || line["part"] != part || line["member"] != s.id.String() {
		t.Errorf("%s: the log says %v, want the %q of %q", what, line, part, s.name)
	}
	if took := r.took(slowSpan); took < trouble {
		t.Errorf("%s: the spans %q took %v, want %v at least: %+v", what, slowSpan, took, trouble, r.spans)
	}
	if logged, _ := line[slowSpan].(float64); time.Duration(logged) != r.took(slowSpan) && slowSpan != "network" {
		t.Errorf("%s: the log says %v of %s, the spans %v", what, time.Duration(logged), slowSpan, r.took(slowSpan))
	}
	if all := fmt.Sprintf("%+v %v", r.spans, line); strings.Contains(all, "secret") {
		t.Errorf("%s: there is a key or a value: %s", what, all)
	}
}

// Ensure that a member whose disk is slow, and one whose link is, is named by spans and by the line of a slow request, of the
// calls that wait for it, at the leader and elsewhere, and on both transports; and that it is not while others are enough.
func TestSplit(t *testing.T) {
	for _, transport := range []string{"quorate", "grpc-go"} {
		t.Run(transport, func(t *testing.T) {
			defer func(before bool) { *library = before }(*library)
			*library = transport == "grpc-go"
			sites := startSites(t, 3, offers.Never)
			leader, slow, other := sites[0], sites[1], sites[2]
			callAt(t, leader, putSecret)

			slow.disk.Store(int64(2 * trouble)) // the control: the other one is enough
			if of, _ := callAt(t, leader, putSecret).named(); of == slow.name {
				t.Errorf("%s is named, and was not waited for", slow.name)
			}
			slow.disk.Store(0)
			join(leader, slow, 2*trouble)
			for what, call := range map[string]func(context.Context, pb.KVClient) error{"put": putSecret, "get": getSecret} {
				r := callAt(t, leader, call)
				if of, _ := r.named(); of == slow.name {
					t.Errorf("%s: %s is named, and was not waited for: %+v", what, slow.name, r.spans)
				}
			}
			// The leader waited for the other one, and the follower for the leader: by far longer.
			callAt(t, slow, putSecret).waits(t, "a put at a follower that is far away", leader, "link", "network")
			join(leader, slow, 0)
			other.stop(t)
			callAt(t, leader, putSecret)

			slow.disk.Store(int64(trouble))
			callAt(t, leader, putSecret).waits(t, "a put at the leader, slow disk", slow, "disk", "sync")
			callAt(t, slow, putSecret).waits(t, "a put at a follower with a slow disk", slow, "disk", "sync")
			slow.disk.Store(0)
			leader.disk.Store(int64(trouble))
			callAt(t, slow, putSecret).waits(t, "a put at a follower, slow disk of the leader", leader, "disk", "sync")
			callAt(t, leader, putSecret).waits(t, "a put at the leader, slow disk of its own", leader, "disk", "sync")
			leader.disk.Store(0)
			join(leader, slow, trouble)
			callAt(t, leader, putSecret).waits(t, "a put at the leader, slow link", slow, "link", "network")
			callAt(t, slow, putSecret).waits(t, "a put at a follower, slow link", leader, "link", "network")
			callAt(t, leader, getSecret).waits(t, "a get at the leader, slow link", slow, "link", "network")
		})
	}
}

// Ensure that a scrape that asks for OpenMetrics finds the trace of a recorded call in its histograms, any other scrape finds the
// same numbers without it, and without tracing no call has one.
func TestServices_exemplars(t *testing.T) {
	const trace = `# {trace_id="0af7651916cd43dd8448eb211c80319c"} `
	for _, traced := range []bool{true, false} {
		s := serveMember(t, func(o *rpc.Options) {
			if o.ExtensiveMetrics = true; traced {
				o.Tracer = &recorder{}
			}
		})
		// A call that asks for its route has a goroutine, as each one has while calls are traced.
		ctx, kv := metadata.AppendToOutgoingContext(waitContext(t), routeKey, "?"), pb.NewKVClient(s.conn(t))
		for _, call := range []func(context.Context, pb.KVClient) error{putSecret, getSecret} {
			if err := call(ctx, kv); err != nil {
				t.Fatal(err)
			}
		}
		open, plain := scrape(t, s, "application/openmetrics-text; version=1.0.0"), scrape(t, s, "text/plain")
		for _, series := range []string{
			`etcd_server_request_duration_seconds_bucket{success="true",type="Put"`,
			`etcd_server_request_duration_seconds_bucket{success="true",type="Range"`,
			`grpc_server_handling_seconds_bucket{grpc_method="Put"`,
		} {
			found := false
			for line := range strings.Lines(open) {
				found = found || strings.HasPrefix(line, series) && strings.Contains(line, trace)
			}
			if found != traced {
				t.Errorf("traced: %t; %s has the trace: %t", traced, series, found)
			}
			if !strings.Contains(plain, series) || strings.Contains(plain, "trace_id") {
				t.Errorf("a scrape of plain text has no %s, or has traces", series)
			}
		}
		if names(open) != names(plain) {
			t.Errorf("OpenMetrics has\n%s\nplain text\n%s", names(open), names(plain))
		}
	}
}

// scrape returns the metrics in a format.
func scrape(t *testing.T, s *server, accept string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	s.services.HTTP().MetricsHandler(s.registry).ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// names returns the names of all series, without labels.
func names(text string) string {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, "{"); line[0] != '#' {
			name, _, _ = strings.Cut(name, " ")
			if !strings.HasPrefix(name, "promhttp_") {
				all[name] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), "\n")
}
