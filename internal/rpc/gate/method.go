package gate

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/rpc/metrics"
)

// Method is one method: by which members it is served, and its counters.
type Method struct {
	name, service, method, kind string
	servedByLearner             bool
	servedByCorrupt             bool // by a member whose state is known to be wrong
	callers                     callers
	tellsOfItself               bool // it shows how this member is, and nothing of what the cluster holds
	waits                       bool // for other clients, or members: it is not slow, however long it takes

	started, received, sent atomic.Uint64
	handled                 [17]atomic.Uint64 // by code
	latency                 metrics.Latencies
}

// methods are all that a server may serve.
type methods struct {
	byName  map[string]*Method // by full method; never written to once made
	order   []*Method
	unknown *Method
}

func newMethods() *methods {
	m := &methods{byName: make(map[string]*Method), unknown: &Method{name: "unknown", callers: ofRoot}}
	for _, desc := range []*grpc.ServiceDesc{
		&pb.KV_ServiceDesc, &pb.Watch_ServiceDesc, &pb.Lease_ServiceDesc, &pb.Cluster_ServiceDesc,
		&pb.Maintenance_ServiceDesc, &pb.Auth_ServiceDesc, &healthpb.Health_ServiceDesc,
		&v3lockpb.Lock_ServiceDesc, &v3electionpb.Election_ServiceDesc,
		&quoratepb.Membership_ServiceDesc, &quoratepb.Writer_ServiceDesc, &quoratepb.Tokens_ServiceDesc,
		&quoratepb.Upgrade_ServiceDesc, &quoratepb.Doctor_ServiceDesc, &quoratepb.Top_ServiceDesc,
		&quoratepb.History_ServiceDesc, &quoratepb.Limits_ServiceDesc, &quoratepb.Audit_ServiceDesc,
		&quoratepb.Encryption_ServiceDesc, &quoratepb.Backup_ServiceDesc,
	} {
		for i := range desc.Methods {
			m.add(desc.ServiceName, desc.Methods[i].MethodName, "unary")
		}
		for i := range desc.Streams {
			kind := "server_stream"
			if desc.Streams[i].ClientStreams {
				kind = "bidi_stream"
			}
			m.add(desc.ServiceName, desc.Streams[i].StreamName, kind)
		}
	}
	for _, method := range m.order {
		method.decideWhoServes()
		method.decideWhoCalls()
	}
	return m
}

func (m *methods) add(service, method, kind string) {
	one := &Method{name: "/" + service + "/" + method, service: service, method: method, kind: kind}
	m.byName[one.name] = one
	m.order = append(m.order, one)
}

func (m *methods) find(name string) *Method {
	if one, ok := m.byName[name]; ok {
		return one
	}
	return m.unknown
}

// callers says who may call a method.
type callers uint8

const (
	ofRoot    callers = iota // users with the role root: of all methods that no table names
	ofRootNow                // the same, as of now everywhere: of what changes more than the state machine
	ofUsers                  // every user
	ofService                // callers that the service lets, or the state machine
	ofAll                    // any client, without logging in
)

// decideWhoCalls is the table of callers and of the methods that they may call.
func (m *Method) decideWhoCalls() {
	switch m.service {
	case pb.KV_ServiceDesc.ServiceName, pb.Watch_ServiceDesc.ServiceName, pb.Lease_ServiceDesc.ServiceName,
		pb.Auth_ServiceDesc.ServiceName, quoratepb.Writer_ServiceDesc.ServiceName, quoratepb.History_ServiceDesc.ServiceName,
		v3lockpb.Lock_ServiceDesc.ServiceName, v3electionpb.Election_ServiceDesc.ServiceName:
		m.callers = ofService
	case healthpb.Health_ServiceDesc.ServiceName:
		m.callers = ofAll
	}
	switch m.name {
	case pb.Maintenance_Status_FullMethodName, pb.Cluster_MemberList_FullMethodName,
		quoratepb.Membership_Describe_FullMethodName, quoratepb.Membership_Plan_FullMethodName,
		quoratepb.Membership_ListJobs_FullMethodName, quoratepb.Membership_Watch_FullMethodName,
		quoratepb.Upgrade_Status_FullMethodName, quoratepb.Backup_Status_FullMethodName,
		quoratepb.Doctor_Observe_FullMethodName, quoratepb.Doctor_Collect_FullMethodName:
		m.callers = ofUsers
	case pb.Cluster_MemberAdd_FullMethodName, pb.Cluster_MemberRemove_FullMethodName, pb.Cluster_MemberUpdate_FullMethodName,
		pb.Cluster_MemberPromote_FullMethodName, pb.Maintenance_MoveLeader_FullMethodName,
		quoratepb.Membership_Start_FullMethodName, quoratepb.Membership_CancelJob_FullMethodName,
		quoratepb.Membership_Join_FullMethodName, quoratepb.Encryption_Rotate_FullMethodName:
		m.callers = ofRootNow
	case pb.Maintenance_Alarm_FullMethodName: // root raises and disarms, every user lists
		m.callers = ofService
	}
}

// decideWhoServes is the table of what is served by learners, by corrupt members and by those that were left behind.
func (m *Method) decideWhoServes() {
	snapshot, status := m.name == pb.Maintenance_Snapshot_FullMethodName, m.name == pb.Maintenance_Status_FullMethodName
	// An operator asks whichever member answers, and a learner asks the leader for what it does not know.
	native := m.service == quoratepb.Membership_ServiceDesc.ServiceName || m.service == quoratepb.Doctor_ServiceDesc.ServiceName
	upgrade := m.service == quoratepb.Upgrade_ServiceDesc.ServiceName || m.service == quoratepb.Backup_ServiceDesc.ServiceName
	top := m.service == quoratepb.Top_ServiceDesc.ServiceName
	history := m.service == quoratepb.History_ServiceDesc.ServiceName // as a serializable range
	keys := m.service == quoratepb.Encryption_ServiceDesc.ServiceName // of this member alone
	m.servedByLearner = native || upgrade || top || history || keys || snapshot || status
	switch m.service {
	case pb.Maintenance_ServiceDesc.ServiceName, pb.Cluster_ServiceDesc.ServiceName,
		quoratepb.Membership_ServiceDesc.ServiceName, quoratepb.Doctor_ServiceDesc.ServiceName,
		healthpb.Health_ServiceDesc.ServiceName:
		m.servedByCorrupt = !snapshot
	}
	switch m.name {
	case v3lockpb.Lock_Lock_FullMethodName, v3electionpb.Election_Campaign_FullMethodName,
		quoratepb.Doctor_Collect_FullMethodName, quoratepb.Top_Get_FullMethodName:
		m.waits = true
	}
	m.tellsOfItself = native || status || m.name == pb.Cluster_MemberList_FullMethodName
}

func (m *Method) begin() {
	m.started.Add(1)
	m.received.Add(1)
}

func (m *Method) end(err error, begun, now time.Time, histogram bool, trace string) {
	code := codes.OK
	if err != nil {
		code = status.Code(err)
	} else if m.kind == "unary" {
		m.sent.Add(1)
	}
	if int(code) < len(m.handled) {
		m.handled[code].Add(1)
	}
	if histogram {
		m.latency.Observe(now.Sub(begun), trace, now)
	}
}

// callKind distinguishes calls in the counter of client versions.
type callKind uint8

const (
	callUnary callKind = iota
	callStream
)

func (k callKind) String() string {
	if k == callStream {
		return "stream"
	}
	return "unary"
}

// clientVersions counts calls by the version that clients say they are.
type clientVersions struct {
	mu     sync.Mutex
	counts atomic.Pointer[map[clientKey]*atomic.Uint64]
}

type clientKey struct {
	kind    callKind
	version string
}

// maxClientVersions bounds the counter of client versions: the version is whatever a client sends.
const maxClientVersions = 64

func newClientVersions() *clientVersions {
	v := new(clientVersions)
	v.counts.Store(&map[clientKey]*atomic.Uint64{})
	return v
}

// count counts a call of a client that says it is version.
func (v *clientVersions) count(kind callKind, version string) {
	if version == "" {
		version = "unknown"
	}
	key := clientKey{kind, version}
	if n, ok := (*v.counts.Load())[key]; ok {
		n.Add(1)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known := *v.counts.Load()
	if len(known) >= maxClientVersions {
		key.version = "other"
	}
	if n, ok := known[key]; ok {
		n.Add(1)
		return
	}
	key.version = strings.Clone(key.version)
	more := make(map[clientKey]*atomic.Uint64, len(known)+1)
	for k, n := range known {
		more[k] = n
	}
	more[key] = new(atomic.Uint64)
	more[key].Add(1)
	v.counts.Store(&more)
}

// slowLog lets one warning a second through and counts the rest.
type slowLog struct {
	total      atomic.Uint64
	last       monotime.Atomic
	suppressed atomic.Uint64
}

// note counts a slow request and tells whether to log it, with how many were not logged before it.
func (l *slowLog) note(now time.Time) (suppressed uint64, ok bool) {
	l.total.Add(1)
	if !l.last.Advance(now, time.Second) {
		l.suppressed.Add(1)
		return 0, false
	}
	return l.suppressed.Swap(0), true
}

// Collect shows the counters of all methods, under etcd's names.
func (g *Gate) Collect(e *metrics.Emitter) {
	e.Counter("etcd_server_leader_changes_seen_total", "Leaders that this member has seen take over.",
		float64(g.leaderChanges.Load()))
	e.Counter("quorate_slow_requests_total", "Requests that took longer than --warning-unary-request-duration.",
		float64(g.slow.total.Load()))
	for key, n := range *g.clients.counts.Load() {
		e.Counter("etcd_server_client_requests_total", "Calls by the version that clients say they are.",
			float64(n.Load()), "type", key.kind.String(), "client_api_version", key.version)
	}
	for _, m := range g.methods.order {
		labels := []string{"grpc_type", m.kind, "grpc_service", m.service, "grpc_method", m.method}
		e.Counter("grpc_server_started_total", "Calls begun.", float64(m.started.Load()), labels...)
		e.Counter("grpc_server_msg_received_total", "Messages received.", float64(m.received.Load()), labels...)
		e.Counter("grpc_server_msg_sent_total", "Messages sent.", float64(m.sent.Load()), labels...)
		for code := range m.handled {
			// All codes from the start, as in etcd: the rate of a series that begins with its first failure is zero.
			e.Counter("grpc_server_handled_total", "Calls ended, by code.", float64(m.handled[code].Load()),
				append(labels[:6:6], "grpc_code", codeName(codes.Code(code)))...)
		}
		if g.options.Histograms {
			e.Latencies("grpc_server_handling_seconds", "How long calls took.", &m.latency, labels...)
		}
	}
}

func codeName(code codes.Code) string {
	if code > codes.Unauthenticated {
		return strconv.Itoa(int(code))
	}
	return code.String()
}
