package rpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/limits/rates"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/rpc/h2"
	"github.com/quorate/quorate/internal/rpc/pingack"
	"github.com/quorate/quorate/internal/rpc/portmux"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

const (
	testCluster = consensus.ClusterID(0xc1)
	testMember  = consensus.MemberID(0xa1)
	testPeerURL = "http://127.0.0.1:1"
	// testWait ends a test that hangs. Nothing may depend on it: a machine under load, with the race detector, takes five times
	// as long as another.
	testWait = time.Minute
)

func initialConfig() consensus.Config {
	return consensus.Config{
		Voters:  []consensus.MemberID{testMember},
		Members: []consensus.Member{{ID: testMember, Name: "one", PeerURLs: []string{testPeerURL}}},
	}
}

// server is the services of one member behind a loopback port.
type server struct {
	addr     string
	services *rpc.Services
	registry *prometheus.Registry
	backend  rpc.Backend
	bare     *grpc.ClientConn // for tests that make calls themselves
}

// library makes all tests of services use --grpc-transport=grpc-go.
var library = flag.Bool("grpc-go", false, "serve with grpc-go's transport")

// encrypted makes the clients of BenchmarkRoad use TLS.
var encrypted = flag.Bool("encrypted", false, "serve BenchmarkRoad by TLS")

// newTransport makes a server with the services.
func newTransport(services *rpc.Services) interface {
	Serve(net.Listener) error
	Stop()
} {
	if *library {
		server := services.NewGRPCServer()
		services.Register(server)
		return server
	}
	server := services.NewFront(h2.Pings{MinPing: 5 * time.Second}, nil)
	services.RegisterWith(server)
	return server
}

// quickLogin is the default Login of rpc, with cheap hashes.
func quickLogin(t testing.TB, clock env.Clock) rpc.Login {
	t.Helper()
	if clock == nil {
		clock = env.WallClock{}
	}
	quick, err := login.New(login.Options{Clock: clock, BcryptCost: bcrypt.MinCost})
	if err != nil {
		t.Fatal(err)
	}
	return quick
}

// serve puts services on a port. They end with the test.
func serve(t testing.TB, backend rpc.Backend, change func(*rpc.Options)) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if *encrypted {
		listener = hiddenTLS{listener, &tls.Config{Certificates: []tls.Certificate{makeCert(t, "server")}, NextProtos: []string{"h2"}}}
	}
	return serveOn(t, listener, backend, change)
}

// serveOn is serve on a listener.
func serveOn(t testing.TB, listener net.Listener, backend rpc.Backend, change func(*rpc.Options)) *server {
	t.Helper()
	options := rpc.Options{
		Member: backend, Logger: slog.New(slog.DiscardHandler), TempDir: t.TempDir(), StrictReconfig: true,
	}
	if change != nil {
		change(&options)
	}
	if options.Login == nil {
		options.Login = quickLogin(t, options.Clock)
	}
	services := rpc.New(options)
	grpcServer := newTransport(services)
	registry := prometheus.NewRegistry()
	registry.MustRegister(services.Collector())
	httpServer := &http.Server{Handler: services.HTTP().Handler(registry, func(mux *http.ServeMux) {
		mux.Handle("/v3/", services.Gateway())
	}), ConnContext: tlsconn.ConnContext}
	mux := portmux.New(listener)
	var running sync.WaitGroup
	for _, run := range []func() error{
		mux.Serve,
		func() error { return grpcServer.Serve(pingack.Listen(mux.GRPC())) },
		func() error { return httpServer.Serve(mux.HTTP()) },
	} {
		running.Go(func() {
			err := run()
			if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) &&
				!errors.Is(err, net.ErrClosed) {
				t.Errorf("serve: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		services.Close()
		grpcServer.Stop()
		if err := errors.Join(httpServer.Close(), mux.Close()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("close: %v", err)
		}
		running.Wait()
	})
	return &server{addr: listener.Addr().String(), services: services, registry: registry, backend: backend}
}

// client connects the official client.
func (s *server) client(t testing.TB) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// conn is a bare connection.
func (s *server) conn(t testing.TB) *grpc.ClientConn { return s.client(t).ActiveConnection() }

func waitContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	t.Cleanup(cancel)
	return ctx
}

// startMember runs a real member: a cluster of one, on disk, with short ticks.
func startMember(t testing.TB) *member.Member {
	t.Helper()
	return startMemberOn(t, time.Millisecond, onDisk)
}

func onDisk(dir string) (engine.Engine, error) {
	return engine.Open(engine.Options{FS: files.Disk, Dir: dir})
}

// startMemberOn runs a member with ticks of this length, on this engine.
func startMemberOn(t testing.TB, tick time.Duration, open func(dir string) (engine.Engine, error)) *member.Member {
	t.Helper()
	return startMemberBy(t, tick, datadir.Options{OpenEngine: open})
}

// startMemberBy runs a member with ticks of this length. It chooses the directory itself.
func startMemberBy(t testing.TB, tick time.Duration, options datadir.Options) *member.Member {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv("RPC_TEST_LOG") != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	options.FS, options.Dir, options.NoSync, options.Logger = files.Disk, dir, true, logger
	own := wal.Identity{Cluster: testCluster, Member: testMember, Storage: wal.StorageID{1}}
	if err := datadir.Create(options, own, initialConfig()); err != nil {
		t.Fatal(err)
	}
	data, err := datadir.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	raftOptions := raft.Defaults(testMember)
	raftOptions.Cluster = testCluster
	m := member.New(member.Options{
		Data: data, Raft: raftOptions, TickInterval: tick, RequestTimeout: 5 * time.Second,
		MaxRequestBytes: 1536 << 10, Clock: env.WallClock{}, Logger: logger,
	})
	peers, err := transport.New(transport.Options{Self: identity.Claim{Member: testMember, Cluster: testCluster},
		Handler: m.PeerHandler(), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(peers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Stop(), peers.Close()); err != nil {
			t.Errorf("stop the member: %v", err)
		}
	})
	ctx := waitContext(t)
	for m.Leader() != testMember {
		changed := m.LeaderChanged()
		if m.Leader() == testMember {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("the member did not become leader")
		}
	}
	return m
}

// publish publishes a member's name and URLs.
func publish(t testing.TB, m *member.Member) {
	t.Helper()
	result, err := m.Propose(waitContext(t), &kv.Command{Publish: &kv.PublishOp{
		Member: uint64(testMember), Name: "one", ClientURLs: []string{"http://127.0.0.1:2"},
	}})
	if err = errors.Join(err, result.Err); err != nil {
		t.Fatal(err)
	}
}

// serveMember is a real member behind a port, published under a name.
func serveMember(t testing.TB, change func(*rpc.Options)) *server {
	t.Helper()
	m := startMember(t)
	publish(t, m)
	return serve(t, m, func(o *rpc.Options) {
		o.Membership = m.Membership()
		if change != nil {
			change(o)
		}
	})
}

// machineBackend serves from a state machine alone: proposals are applied at once. It shows the cost of the services
// themselves, and lets tests take the leader away.
type machineBackend struct {
	store   engine.Engine
	mu      sync.Mutex
	machine *apply.Machine
	index   consensus.Index
	leader  consensus.MemberID
	changed chan struct{}
	learner bool
	pause   func(context.Context) (string, error) // SoakPausedBy
	// meanwhile is what happens before the next command is applied.
	meanwhile func()
}

func newMachineBackend(t testing.TB) *machineBackend {
	t.Helper()
	return newMachineBackendOf(t, apply.Options{})
}

func newMachineBackendOf(t testing.TB, options apply.Options) *machineBackend {
	t.Helper()
	store, err := engine.OpenMem(engine.MemOptions{FS: files.Disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(store, testCluster, initialConfig()); err != nil {
		t.Fatal(err)
	}
	machine, err := apply.Open(store, options)
	if err != nil {
		t.Fatal(err)
	}
	machine.Leases().Promote(time.Now(), 0)
	return &machineBackend{store: store, machine: machine, leader: testMember, changed: make(chan struct{})}
}

// lead makes id the leader; with NoMember there is none.
func (b *machineBackend) lead(id consensus.MemberID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leader = id
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *machineBackend) ID() consensus.MemberID       { return testMember }
func (b *machineBackend) EpochName() string            { return "0" }
func (b *machineBackend) Cluster() consensus.ClusterID { return testCluster }
func (b *machineBackend) Term() consensus.Term         { return 7 }
func (b *machineBackend) Learner() bool                { return b.learner }
func (b *machineBackend) Corrupt() bool {
	return integrity.Marked(b.machine.Alarms(), testMember)
}

func (b *machineBackend) Status() raft.Status {
	return raft.Status{ID: testMember, IsLearner: b.learner, Config: initialConfig()}
}

func (b *machineBackend) Leader() consensus.MemberID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leader
}

func (b *machineBackend) LeaderChanged() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *machineBackend) Machine() (*apply.Machine, func()) { return b.machine, func() {} }
func (b *machineBackend) Users() *auth.State                { return b.machine.Users() }
func (b *machineBackend) Limits() *rates.Set                { return b.machine.Limits() }
func (b *machineBackend) Audit() *apply.Audit               { return b.machine.Audit() }
func (b *machineBackend) Hub() *watch.Hub                   { return b.machine.Hub() }

func (b *machineBackend) Propose(_ context.Context, command *kv.Command) (kv.Result, error) {
	payload := command.Append(nil)
	if meanwhile := b.meanwhile; meanwhile != nil {
		b.meanwhile = nil
		meanwhile()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leader == consensus.NoMember {
		return kv.Result{}, member.ErrNoLeader
	}
	b.index++
	results, err := b.machine.Apply([]consensus.Entry{{
		Index: b.index, Term: 7, Kind: consensus.EntryCommand, Payload: payload,
	}})
	if err != nil {
		return kv.Result{}, err
	}
	return results[0], nil
}

func (b *machineBackend) Prompt() bool { return true }

// PromptFor encodes the command, as a member does whose build knows more than the active level.
func (b *machineBackend) PromptFor(command *kv.Command) bool { return len(command.Append(nil)) > 0 }

func (b *machineBackend) ProposeAsync(command *kv.Command, done proposals.Completion) (func() bool, error) {
	done.Complete(b.Propose(context.Background(), command))
	return func() bool { return false }, nil
}

func (b *machineBackend) ReadAsync(done proposals.Completion) (func() bool, error) {
	done.Complete(kv.Result{}, b.ReadIndex(context.Background()))
	return func() bool { return false }, nil
}

func (b *machineBackend) ReadIndex(context.Context) error {
	if b.Leader() == consensus.NoMember {
		return member.ErrNoLeader
	}
	return nil
}

func (b *machineBackend) ChangeConfig(context.Context, consensus.ChangeRequest) (consensus.Config, error) {
	return consensus.Config{}, &membership.RefusedError{Reason: consensus.ReasonChangePending}
}

func (b *machineBackend) TransferLeadership(context.Context, consensus.MemberID) error {
	return member.ErrBadTransferee
}

func (b *machineBackend) RenewLeases(_ context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	return b.machine.Leases().RenewAll(ids, time.Now())
}

func (b *machineBackend) LeaseTimeToLive(_ context.Context, id kv.LeaseID) (remaining, granted int64, err error) {
	info, err := b.machine.Leases().TimeToLive(id, time.Now())
	return int64(info.Remaining / time.Second), info.TTLSeconds, err
}

// SoakPausedBy implements rpc.Backend.
func (b *machineBackend) SoakPausedBy(ctx context.Context) (string, error) {
	if b.pause == nil {
		return "", nil
	}
	return b.pause(ctx)
}

func (b *machineBackend) Backup(ctx context.Context, f func(context.Context, *apply.Machine) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return f(ctx, b.machine)
}

// get fetches a URL of the server and returns status and body.
func (s *server) get(t testing.TB, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + s.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// rpcOptions shortens the signatures of changes.
type rpcOptions = rpc.Options

// metrics returns the text of /metrics, without the pause between two scrapes.
func (s *server) metrics(t testing.TB) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("metrics: %s", answer.Body)
	}
	return answer.Body.String()
}

// awaitMetric waits until a line is among the metrics.
func (s *server) awaitMetric(t testing.TB, line string) {
	t.Helper()
	ctx := waitContext(t)
	for {
		body := s.metrics(t)
		if strings.Contains(body, line+"\n") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("no line %s in\n%s", line, body)
		}
		<-time.After(2 * time.Millisecond)
	}
}
