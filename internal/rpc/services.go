package rpc

import (
	"context"
	"math"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/gateway"
	"github.com/quorate/quorate/internal/rpc/health"
	"github.com/quorate/quorate/internal/rpc/httpapi"
	"github.com/quorate/quorate/internal/rpc/inproc"
	"github.com/quorate/quorate/internal/rpc/lockapi"
	"github.com/quorate/quorate/internal/rpc/membershipapi"
	"github.com/quorate/quorate/internal/rpc/timings"
	"github.com/quorate/quorate/internal/rpc/top"
	"github.com/quorate/quorate/internal/rpc/wire"
	"github.com/quorate/quorate/internal/rpc/writerapi"
)

// Services are etcd's gRPC services for one member, and the native ones beside them.
type Services struct {
	*shared
	kv      *kvService
	gate    *gate.Gate
	first   *firstMessages
	checker *health.Checker
	health  *health.Watcher
	http    *httpapi.API
	channel *inproc.Channel // to etcd's services, for calls from inside
	within  *inproc.Channel // to all services, for the console
	store   *lockapi.Store
	gateway *gateway.Gateway
	turns   *admission.Turns // of large messages whose decoding or encoding is costly
	ranks   *topService
	// The native services, nil if they are left out.
	membership *membershipapi.Service
	writer     *writerapi.Service
}

// New makes the services of a member. They answer once they are registered; Close ends their background work and every watch
// stream.
func New(options Options) *Services {
	options.setDefaults()
	s := &Services{
		shared: &shared{
			options: options,
			self:    uint64(options.Member.ID()),
			cluster: uint64(options.Member.Cluster()),
			bounds:  newBounds(&options),
			timings: timings.New(options.Clock),
			adding:  make(chan struct{}, 1),
			top:     top.New(top.CountersFor(options.TopBytes), options.Clock.Now()),
		},
		first: newFirstMessages(options.FirstMessage),
		turns: admission.NewTurns(),
	}
	s.access = access.New(access.Options{
		Machine: options.Member.Machine, Users: options.Member.Users, CatchUp: s.readIndex,
		Tokens: options.Login, Certificates: options.Certificates,
	})
	s.audits.trail, s.audits.shared = options.Audit, s.shared
	s.gate = gate.New(gate.Options{
		Member: options.Member, Access: s.access, Superseded: options.Superseded,
		Held: options.Held, Renewals: options.Renewals,
		ElectionTimeout: options.ElectionTimeout, SlowRequest: options.SlowRequest, Histograms: options.ExtensiveMetrics,
		Clock: options.Clock, Logger: options.Logger, Tracer: options.Tracer, NameOf: s.nameOf,
	})
	s.bounds.streams = s.gate.StreamCounts
	s.kv = &kvService{s.shared, s.gate}
	s.ranks = &topService{shared: s.shared, answers: map[asked]made{}}
	asked := health.Options{Member: options.Member, Stalled: options.Stalled, LowDisk: options.LowDisk,
		Logger: options.Logger}
	s.checker, s.health = health.New(asked), health.Watch(asked)
	if options.Membership != nil {
		s.membership = membershipapi.New(membershipapi.Options{
			ClusterID: s.cluster, Member: options.Member, Cluster: options.Membership,
			StrictReconfig: options.StrictReconfig, Clock: options.Clock,
		})
	}
	if options.Clients != nil {
		s.writer = writerapi.New(writerapi.Options{
			ClusterID: s.cluster, MemberID: s.self, Member: options.Member, Clients: options.Clients, KV: nativeKV{s.kv},
			MaxMessageBytes: options.maxMessageBytes(), Pending: &s.stats.pending, Failed: &s.stats.failedProposals,
			Clock: options.Clock, Held: options.Held,
		})
	}
	s.channel = inproc.New(inproc.Options{
		Unary: s.unary, Stream: s.stream, Codec: s.codec(),
		MaxRequestBytes: options.maxMessageBytes(), MaxReplyBytes: maxInsideReplyBytes,
	})
	s.store = lockapi.NewStore(s.channel, s.bounds.waiting)
	s.registerEtcd(s.channel)
	s.within = inproc.New(inproc.Options{
		Unary: s.unary, Stream: s.stream, Codec: s.codec(),
		MaxRequestBytes: options.maxMessageBytes(), MaxReplyBytes: maxInsideReplyBytes,
	})
	s.RegisterWith(s.within)
	s.http = httpapi.New(httpapi.Options{
		Health: s.checker, Version: httpapi.Version(options.Version), Logger: options.Logger,
		AllowedHosts: options.AllowedHosts, AllowedOrigins: options.AllowedOrigins,
	})
	s.gateway = s.newGateway()
	return s
}

// newGateway makes the JSON gateway, which passes requests on to the services with the credentials of their senders.
func (s *Services) newGateway() *gateway.Gateway {
	return gateway.New(gateway.Options{
		Conn: s.channel, MaxMessageBytes: s.options.maxMessageBytes(), MaxHostCalls: s.options.MaxConcurrentStreams,
		Held: s.options.Held, Answers: s.options.Answers, First: s.first.FirstMessages, Turns: s.turns,
		Hosts:         &s.bounds.websockets,
		NamesIgnored:  func() bool { return s.options.Certificates && s.access.State().Enabled() },
		AllowedOrigin: s.http.AllowsOrigin,
	})
}

// Gateway serves the JSON API, below /v3/.
func (s *Services) Gateway() http.Handler { return s.gateway.Handler() }

// HTTP is the HTTP side of the member.
func (s *Services) HTTP() *httpapi.API { return s.http }

// Close ends the streams and the background work.
func (s *Services) Close() {
	s.health.Close()
	s.first.close()
	s.gate.Close()
}

// Register adds the services to a server made by NewGRPCServer.
func (s *Services) Register(server *grpc.Server) {
	s.RegisterWith(s.first.Registrar(server))
}

// RegisterWith adds the services to any registrar.
func (s *Services) RegisterWith(timed grpc.ServiceRegistrar) {
	s.registerEtcd(timed)
	quoratepb.RegisterTokensServer(timed, &tokenService{shared: s.shared})
	quoratepb.RegisterUpgradeServer(timed, &upgradeService{shared: s.shared})
	quoratepb.RegisterBackupServer(timed, &backupService{shared: s.shared})
	quoratepb.RegisterTopServer(timed, s.ranks)
	quoratepb.RegisterLimitsServer(timed, &limitService{shared: s.shared})
	quoratepb.RegisterEncryptionServer(timed, &encryptionService{tools: s.options.Keys})
	timed.RegisterService(historyDesc(&historyService{s.shared}), nil)
	quoratepb.RegisterAuditServer(timed, &auditService{shared: s.shared})
	if s.options.Observe != nil {
		quoratepb.RegisterDoctorServer(timed, &doctorService{options: &s.options})
	}
	if s.membership != nil {
		quoratepb.RegisterMembershipServer(timed, s.membership)
	}
	if s.writer != nil {
		quoratepb.RegisterWriterServer(timed, s.writer)
	}
	healthpb.RegisterHealthServer(timed, s.health.Server())
}

// OwnTop tells what this member counted: the answer to another member. It asks no other one.
func (s *Services) OwnTop(_ context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
	return s.ranks.here(r)
}

// registerEtcd adds etcd's services.
func (s *Services) registerEtcd(r grpc.ServiceRegistrar) {
	r.RegisterService(s.kv.desc(), nil)
	r.RegisterService(watchDesc(s.shared), nil)
	leases := &leaseService{shared: s.shared}
	r.RegisterService(leaseDesc(leases), leases)
	pb.RegisterClusterServer(r, &clusterService{shared: s.shared})
	pb.RegisterMaintenanceServer(r, &maintenanceService{shared: s.shared})
	pb.RegisterAuthServer(r, &authService{shared: s.shared})
	v3lockpb.RegisterLockServer(r, lockapi.NewLock(s.store))
	v3electionpb.RegisterElectionServer(r, lockapi.NewElection(s.store))
}

// Sizes and counts chosen with BenchmarkServer_Unary. Workers keep their grown stacks, which saves a tenth of the
// processor time of a call; a call that finds all of them busy gets a goroutine of its own.
const (
	streamWorkers    = 256
	readBufferBytes  = 32 * 1024
	writeBufferBytes = 32 * 1024
	// Windows of fixed size. With growing ones the server pings each client after each request to learn how much data is under
	// way: one more write and read for every call. A request larger than the window waits for one round trip.
	streamWindowBytes = 1 << 20
	connWindowBytes   = 8 << 20
	minPing           = 5 * time.Second // clients that ping more often are disconnected, as by etcd
	// handshakeTimeout is the time for a connection to begin HTTP/2.
	handshakeTimeout = 10 * time.Second
	// maxHeaderBytes bounds the decompressed headers of a call: compressed ones grow thousandfold (RFC 7541, section 7.3).
	maxHeaderBytes = 16 << 10
	// maxInsideReplyBytes bounds an answer for another service or for the JSON gateway, which need it in another form beside
	// this one.
	maxInsideReplyBytes = 64 << 20
)

// pass passes a call through the gate, and counts its answer.
func (s *Services) pass(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	return s.gate.Unary(ctx, request, info, func(ctx context.Context, request any) (any, error) {
		ctx, inside := s.inside(ctx, info.FullMethod)
		defer inside.forget()
		response, err := handle(ctx, request)
		if err != nil {
			return nil, err
		}
		return s.counted(ctx, response)
	})
}

// stream passes a stream through the gate, and counts its messages. Streams on which the client sends many messages, and
// backups, have bounds of their own.
func (s *Services) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if !info.IsClientStream && info.FullMethod != pb.Maintenance_Snapshot_FullMethodName {
		sendPlain(ss.Context()) // like large answers (uncompressed)
		counted := handle
		handle = func(srv any, ss grpc.ServerStream) error {
			ctx, inside := s.inside(ss.Context(), info.FullMethod)
			defer inside.forget()
			return counted(srv, countedStream{inproc.WithContext(ctx, ss), s.shared})
		}
	}
	return s.audit(ss, info, func(ss grpc.ServerStream) error { return s.gate.Stream(srv, ss, info, handle) })
}

func (s *Services) codec() wire.Codec {
	return wire.Codec{Received: &s.stats.receivedBytes, Sent: &s.stats.sentBytes}
}

// NewGRPCServer makes a server with the codec, limits and interceptors that the services need. more comes last and may add
// credentials and keep-alive parameters.
func (s *Services) NewGRPCServer(more ...grpc.ServerOption) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(s.codec()),
		grpc.Creds(tlsconn.Credentials()),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		grpc.MaxRecvMsgSize(s.options.maxMessageBytes()),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxConcurrentStreams(s.options.MaxConcurrentStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing}),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.WriteBufferSize(writeBufferBytes),
		grpc.SharedWriteBuffer(true),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.StaticStreamWindowSize(streamWindowBytes),
		grpc.StaticConnWindowSize(connWindowBytes),
	}
	return grpc.NewServer(append(options, more...)...)
}
