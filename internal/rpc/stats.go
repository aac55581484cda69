package rpc

import (
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
)

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

// stats are the counters of the services. They are plain atomics, because they are touched by every call; metrics.go
// turns them into Prometheus metrics when these are asked for.
type stats struct {
	methods map[string]*methodStats // by full method; never written to once made
	order   []*methodStats
	unknown *methodStats

	clientsMu sync.Mutex
	clients   atomic.Pointer[map[clientKey]*atomic.Uint64]

	leaderChanges   atomic.Uint64
	promoted        atomic.Uint64
	promoteFailures sync.Map      // text of the error -> *atomic.Uint64; as many as there are errors
	events          atomic.Uint64 // handed to watchers
	healthSuccess   atomic.Uint64
	healthFailures  atomic.Uint64
	slow            slowLog

	put, ranges, deletes, txn, compact *methodStats

	puts, deleted, ranged, txns atomic.Uint64
	pending                     atomic.Int64 // proposals
	failedProposals             atomic.Uint64
	receivedBytes, sentBytes    atomic.Uint64 // of messages
	unread                      atomic.Uint64 // streams of native clients that ended because of that
}

type clientKey struct {
	kind    callKind
	version string
}

// maxClientVersions bounds the counter of client versions: the version is whatever a client sends.
const maxClientVersions = 64

// methodStats are the counters of one method.
type methodStats struct {
	name, service, method, kind string
	servedByLearner             bool
	servedByCorrupt             bool // by a member whose state is known to be wrong
	tellsOfItself               bool // it shows how this member is, and nothing of what the cluster holds
	started, received, sent     atomic.Uint64
	handled                     [17]atomic.Uint64 // by code
	latency                     latencies
}

func newStats() *stats {
	s := &stats{methods: make(map[string]*methodStats), unknown: &methodStats{name: "unknown"}}
	s.clients.Store(&map[clientKey]*atomic.Uint64{})
	for _, desc := range []*grpc.ServiceDesc{
		&pb.KV_ServiceDesc, &pb.Watch_ServiceDesc, &pb.Lease_ServiceDesc, &pb.Cluster_ServiceDesc,
		&pb.Maintenance_ServiceDesc, &pb.Auth_ServiceDesc, &healthpb.Health_ServiceDesc,
		&quoratepb.Membership_ServiceDesc, &quoratepb.Writer_ServiceDesc,
	} {
		for i := range desc.Methods {
			s.add(desc.ServiceName, desc.Methods[i].MethodName, "unary")
		}
		for i := range desc.Streams {
			kind := "server_stream"
			if desc.Streams[i].ClientStreams {
				kind = "bidi_stream"
			}
			s.add(desc.ServiceName, desc.Streams[i].StreamName, kind)
		}
	}
	s.method(pb.Maintenance_Status_FullMethodName).servedByLearner = true
	s.method(pb.Maintenance_Snapshot_FullMethodName).servedByLearner = true
	for _, m := range s.order {
		// Who operates a cluster asks whichever member answers, and what a learner does not know it asks the leader.
		m.servedByLearner = m.servedByLearner || m.service == quoratepb.Membership_ServiceDesc.ServiceName
		switch m.service {
		case pb.Maintenance_ServiceDesc.ServiceName, pb.Cluster_ServiceDesc.ServiceName,
			quoratepb.Membership_ServiceDesc.ServiceName, healthpb.Health_ServiceDesc.ServiceName:
			m.servedByCorrupt = m.name != pb.Maintenance_Snapshot_FullMethodName
		}
	}
	for _, m := range s.order {
		m.tellsOfItself = m.service == quoratepb.Membership_ServiceDesc.ServiceName
	}
	s.method(pb.Maintenance_Status_FullMethodName).tellsOfItself = true
	s.method(pb.Cluster_MemberList_FullMethodName).tellsOfItself = true
	s.put, s.ranges = s.method(pb.KV_Put_FullMethodName), s.method(pb.KV_Range_FullMethodName)
	s.deletes, s.txn = s.method(pb.KV_DeleteRange_FullMethodName), s.method(pb.KV_Txn_FullMethodName)
	s.compact = s.method(pb.KV_Compact_FullMethodName)
	return s
}

func (s *stats) add(service, method, kind string) {
	m := &methodStats{name: "/" + service + "/" + method, service: service, method: method, kind: kind}
	s.methods[m.name] = m
	s.order = append(s.order, m)
}

func (s *stats) method(name string) *methodStats {
	if m, ok := s.methods[name]; ok {
		return m
	}
	return s.unknown
}

func (m *methodStats) begin() {
	m.started.Add(1)
	m.received.Add(1)
}

func (m *methodStats) end(err error, took time.Duration, extensive bool) {
	code := codes.OK
	if err != nil {
		code = status.Code(err)
	} else if m.kind == "unary" {
		m.sent.Add(1)
	}
	if int(code) < len(m.handled) {
		m.handled[code].Add(1)
	}
	if extensive {
		m.latency.observe(took)
	}
}

// countClient counts a call of a client that says it is version.
func (s *stats) countClient(kind callKind, version string) {
	if version == "" {
		version = "unknown"
	}
	key := clientKey{kind, version}
	if n, ok := (*s.clients.Load())[key]; ok {
		n.Add(1)
		return
	}
	s.clientsMu.Lock()
	defer s.clientsMu.Unlock()
	known := *s.clients.Load()
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
	s.clients.Store(&more)
}

// slowLog lets one warning a second through and counts the rest.
type slowLog struct {
	total      atomic.Uint64
	last       atomic.Int64
	suppressed atomic.Uint64
}

// note counts a slow request and tells whether to log it, with how many were not logged before it.
func (l *slowLog) note(now time.Time) (suppressed uint64, ok bool) {
	l.total.Add(1)
	last := l.last.Load()
	if now.UnixNano()-last < int64(time.Second) || !l.last.CompareAndSwap(last, now.UnixNano()) {
		l.suppressed.Add(1)
		return 0, false
	}
	return l.suppressed.Swap(0), true
}

// latencies is a histogram with bounds of 1 ms times powers of two, as etcd's.
type latencies struct {
	counts [latencyBounds + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

const latencyBounds = 14

func (l *latencies) observe(took time.Duration) {
	at, bound := 0, time.Millisecond
	for at < latencyBounds && took > bound {
		at, bound = at+1, 2*bound
	}
	l.counts[at].Add(1)
	l.sum.Add(int64(took))
}

// promoteFailed counts a refused promotion under the text of its error on the wire, as etcd does.
func (s *stats) promoteFailed(err error) {
	text := status.Convert(err).Message()
	n, _ := s.promoteFailures.LoadOrStore(text, new(atomic.Uint64))
	n.(*atomic.Uint64).Add(1)
}
