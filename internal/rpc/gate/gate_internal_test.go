package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/metrics"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/server/tracing"
)

// standIn is a member as the gate sees it.
type standIn struct {
	leader           consensus.MemberID
	learner, corrupt bool
	superseded       error
}

// ID implements Member.
func (s *standIn) ID() consensus.MemberID { return 1 }

func (s *standIn) Leader() consensus.MemberID     { return s.leader }
func (s *standIn) LeaderChanged() <-chan struct{} { return nil }
func (s *standIn) Learner() bool                  { return s.learner }
func (s *standIn) Corrupt() bool                  { return s.corrupt }

// callerIs is who calls: 0 no user, 1 a user, 2 root.
type callerIs int

var errNobody = errors.New("not permitted")

func (c callerIs) need(least callerIs) error {
	if c < least {
		return errNobody
	}
	return nil
}

func (c callerIs) User(context.Context) error    { return c.need(1) }
func (c callerIs) Root(context.Context) error    { return c.need(2) }
func (c callerIs) RootNow(context.Context) error { return c.need(2) }
func (c callerIs) State() *auth.State            { return nil }

func (s *standIn) gate(t *testing.T) *Gate { return s.gateFor(t, 2) }

func (s *standIn) gateFor(t *testing.T, caller callerIs) *Gate {
	g := New(Options{
		Member: s, Access: caller, Superseded: func() error { return s.superseded },
		Held: admission.NewLedger(4 * StreamBytes), Renewals: admission.NewLedger(4 * StreamBytes),
		ElectionTimeout: time.Hour, SlowRequest: time.Hour, Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(g.Close)
	return g
}

func call(ctx context.Context, g *Gate, method string) (served bool, err error) {
	m := g.Method(method)
	return Pass(g, &split.Call{Context: ctx}, m, m.servedByLearner, func() (bool, error) { return true, nil })
}

// Ensure which members serve what.
func TestPass_whoServes(t *testing.T) {
	left := errors.New("recovered without this member")
	members := map[string]*standIn{
		"sound": {leader: 1}, "learner": {leader: 1, learner: true}, "corrupt": {leader: 1, corrupt: true},
		"left": {leader: 1, superseded: left},
	}
	for _, row := range []struct {
		method                 string
		learner, corrupt, left bool
	}{
		{pb.KV_Put_FullMethodName, false, false, false},
		{pb.KV_Range_FullMethodName, false, false, false},
		{pb.Cluster_MemberList_FullMethodName, false, true, true},
		{pb.Cluster_MemberAdd_FullMethodName, false, true, false},
		{pb.Maintenance_Status_FullMethodName, true, true, true},
		{pb.Maintenance_Alarm_FullMethodName, false, true, false},
		{pb.Maintenance_Snapshot_FullMethodName, true, false, false},
		{quoratepb.Membership_Describe_FullMethodName, true, true, true},
		{quoratepb.Doctor_Observe_FullMethodName, true, true, true},
		{quoratepb.Doctor_Collect_FullMethodName, true, true, true},
		{quoratepb.Top_Get_FullMethodName, true, false, false},
		{quoratepb.History_Deleted_FullMethodName, true, false, false},
		{quoratepb.Encryption_Rotate_FullMethodName, true, false, false},
		{quoratepb.Writer_Propose_FullMethodName, false, false, false},
		{v3lockpb.Lock_Lock_FullMethodName, false, false, false},
		{v3electionpb.Election_Observe_FullMethodName, false, false, false},
		{healthpb.Health_Check_FullMethodName, false, true, false},
	} {
		want := map[string]bool{"sound": true, "learner": row.learner, "corrupt": row.corrupt, "left": row.left}
		for name, member := range members {
			served, err := call(context.Background(), member.gate(t), row.method)
			if served != want[name] || (err == nil) != served {
				t.Errorf("%s of a %s member: served %v, %v; want %v", row.method, name, served, err, want[name])
			}
		}
	}
}

// Ensure that every method that no table names is root's, and which ones are not.
func TestPass_whoCalls(t *testing.T) {
	users := []string{
		pb.Maintenance_Status_FullMethodName, pb.Cluster_MemberList_FullMethodName, quoratepb.Membership_Describe_FullMethodName, quoratepb.Doctor_Observe_FullMethodName,
		quoratepb.Doctor_Collect_FullMethodName,
		quoratepb.Membership_Plan_FullMethodName, quoratepb.Membership_ListJobs_FullMethodName,
		quoratepb.Membership_Watch_FullMethodName, quoratepb.Upgrade_Status_FullMethodName, quoratepb.Backup_Status_FullMethodName,
	}
	decidedInside := map[string]bool{pb.Maintenance_Alarm_FullMethodName: true}
	for _, service := range []string{"etcdserverpb.KV", "etcdserverpb.Watch", "etcdserverpb.Lease", "etcdserverpb.Auth",
		quoratepb.Writer_ServiceDesc.ServiceName, quoratepb.History_ServiceDesc.ServiceName, healthpb.Health_ServiceDesc.ServiceName,
		v3lockpb.Lock_ServiceDesc.ServiceName, v3electionpb.Election_ServiceDesc.ServiceName} {
		decidedInside[service] = true
	}
	member := &standIn{leader: 1}
	nobody, user, root := member.gateFor(t, 0), member.gateFor(t, 1), member.gateFor(t, 2)
	for _, m := range append(newMethods().order, newMethods().unknown) {
		inside := decidedInside[m.name] || decidedInside[m.service]
		_, byNobody := call(context.Background(), nobody, m.name)
		_, byUser := call(context.Background(), user, m.name)
		_, byRoot := call(context.Background(), root, m.name)
		if (byNobody == nil) != inside || (byUser == nil) != (inside || slices.Contains(users, m.name)) || byRoot != nil {
			t.Errorf("%s: by nobody %v, by a user %v, by root %v", m.name, byNobody, byUser, byRoot)
		}
	}
}

func TestPass_admission(t *testing.T) {
	with := func(key, value string) context.Context {
		return metadata.NewIncomingContext(context.Background(), metadata.Pairs(key, value))
	}
	leaderless := &standIn{}
	for _, row := range []struct {
		name string
		ctx  context.Context
		want error
	}{
		{"requires no leader", context.Background(), nil},
		{"requires a leader", with(rpctypes.MetadataRequireLeaderKey, rpctypes.MetadataHasLeader), rpctypes.ErrGRPCNoLeader},
		{"has a version", with(rpctypes.MetadataClientAPIVersionKey, "3.6"), nil},
		{"has a version that is no text", with(rpctypes.MetadataClientAPIVersionKey, "\xff"), rpctypes.ErrGRPCInvalidClientAPIVersion},
	} {
		if _, err := call(row.ctx, leaderless.gate(t), pb.KV_Range_FullMethodName); err != row.want {
			t.Errorf("a call that %s: got %v, want %v", row.name, err, row.want)
		}
	}
}

// Ensure that clients cannot make as many counters as they like by the versions that they say they are.
func TestClientVersions_count_bounded(t *testing.T) {
	v := newClientVersions()
	for i := range 3 * maxClientVersions {
		v.count(callUnary, fmt.Sprint("version ", i%(2*maxClientVersions)))
	}
	counts := *v.counts.Load()
	total := uint64(0)
	for _, n := range counts {
		total += n.Load()
	}
	if len(counts) != maxClientVersions+1 || total != 3*maxClientVersions {
		t.Errorf("%d counters of %d calls; want %d of %d", len(counts), total, maxClientVersions+1, 3*maxClientVersions)
	}
}

// Ensure that calls which wait for other clients are not taken for slow.
func TestPass_waits(t *testing.T) {
	g := New(Options{
		Member: &standIn{leader: 1}, Access: callerIs(2), Superseded: func() error { return nil },
		ElectionTimeout: time.Hour, SlowRequest: -1, Clock: env.WallClock{},
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(g.Close)
	for _, row := range []struct {
		method string
		slow   uint64
	}{{v3lockpb.Lock_Lock_FullMethodName, 0}, {v3electionpb.Election_Campaign_FullMethodName, 0}, {pb.KV_Put_FullMethodName, 1}} {
		if _, err := call(context.Background(), g, row.method); err != nil || g.slow.total.Load() != row.slow {
			t.Errorf("%s: %v, %d calls were slow", row.method, err, g.slow.total.Load())
		}
	}
}

func TestSlowLog_note(t *testing.T) {
	var l slowLog
	begun := time.Unix(1000, 0)
	for i, row := range []struct {
		after      time.Duration
		suppressed uint64
		ok         bool
	}{{0, 0, true}, {time.Millisecond, 0, false}, {999 * time.Millisecond, 0, false}, {time.Second, 2, true}} {
		if suppressed, ok := l.note(begun.Add(row.after)); suppressed != row.suppressed || ok != row.ok {
			t.Errorf("note %d: got %d, %v", i, suppressed, ok)
		}
	}
	if n := l.total.Load(); n != 4 {
		t.Errorf("%d were counted, want 4", n)
	}
}

// named is a Tracer for which every call is recorded under an id that its client chose.
type named struct{}

func (named) TraceOf(context.Context) string         { return "0af7651916cd43dd8448eb211c80319c" }
func (named) Inside(context.Context, []tracing.Span) {}

// Ensure that a histogram shows the trace of a call that was permitted, whatever came of it, and of none that anybody may
// make.
func TestMethod_Leave_exemplars(t *testing.T) {
	for _, row := range []struct {
		method string
		err    error
		traced bool
	}{
		{pb.KV_Range_FullMethodName, nil, true},
		{pb.KV_Range_FullMethodName, rpctypes.ErrGRPCTimeout, true},
		{pb.KV_Range_FullMethodName, rpctypes.ErrGRPCUserEmpty, false},
		{pb.KV_Range_FullMethodName, rpctypes.ErrGRPCInvalidAuthToken, false},
		{pb.KV_Range_FullMethodName, rpctypes.ErrGRPCPermissionDenied, false},
		{pb.Auth_Authenticate_FullMethodName, rpctypes.ErrGRPCAuthFailed, false},
		{healthpb.Health_Check_FullMethodName, nil, false},
	} {
		g := (&standIn{leader: 1}).gate(t)
		g.options.Tracer, g.options.Histograms = named{}, true
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.Collector(g.Collect))
		m := g.Method(row.method)
		_, err := Pass(g, &split.Call{Context: t.Context()}, m, true, func() (bool, error) { return true, row.err })
		if !errors.Is(err, row.err) {
			t.Errorf("%s, %v: ended with %v", row.method, row.err, err)
		}
		if got := exemplars(t, registry); (got > 0) != row.traced {
			t.Errorf("%s, %v: %d exemplars, want some: %t", row.method, row.err, got, row.traced)
		}
	}
}

// exemplars counts those of all histograms.
func exemplars(t *testing.T, registry *prometheus.Registry) (n int) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, bucket := range metric.GetHistogram().GetBucket() {
				if bucket.GetExemplar() != nil {
					n++
				}
			}
		}
	}
	return n
}
