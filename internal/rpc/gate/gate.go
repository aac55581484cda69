package gate

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/rpc/etcderr"
	"github.com/quorate/quorate/internal/rpc/incoming"
	"github.com/quorate/quorate/internal/rpc/split"
	"github.com/quorate/quorate/internal/server/tracing"
)

// Member is what the gate asks of a member.
type Member interface {
	Leader() consensus.MemberID
	LeaderChanged() <-chan struct{}
	ID() consensus.MemberID
	// Learner is true for a member that was added as a learner. One that was added as a voter serves from the start, as
	// clients expect of a member that says it is ready; it forwards what it may not decide.
	Learner() bool
	Corrupt() bool
}

// Access refuses callers: *access.Control.
type Access interface {
	Root(ctx context.Context) error
	RootNow(ctx context.Context) error
	User(ctx context.Context) error
	State() *auth.State
}

// Options say whose calls pass, and what is worth a line in the log.
type Options struct {
	Member     Member
	Access     Access
	Superseded func() error // why this member serves nothing; nil error: it serves
	// Held counts what streams take, and Renewals what those take that renew leases when Held has no room.
	Held, Renewals  *admission.Ledger
	ElectionTimeout time.Duration
	SlowRequest     time.Duration // calls that take longer are logged
	Histograms      bool          // of the latencies of each method
	Tracer          Tracer        // nil: no call is traced
	NameOf          func(id consensus.MemberID) string
	Clock           env.Clock
	Logger          *slog.Logger
}

// Tracer records what happens inside of some calls: *tracing.Exporter.
type Tracer interface {
	// TraceOf returns the id of the trace of a call that is recorded; nothing if it is not.
	TraceOf(ctx context.Context) string
	Inside(ctx context.Context, spans []tracing.Span)
}

// Insider knows where the time of a call went: *split.Call, or a call without a goroutine.
type Insider interface {
	Inside() (p proposals.Passage, read time.Duration)
}

// Gate is what every call passes.
type Gate struct {
	options Options
	methods *methods
	clients *clientVersions
	slow    slowLog
	places  streams

	leaderChanges atomic.Uint64

	closing sync.Once
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	streams map[*gatedStream]struct{}
}

// noLeaderTimeouts is how many election timeouts a stream that requires a leader survives without one. It is
// more than one because a stream costs more to set up again than a refused call.
const noLeaderTimeouts = 3

// New makes a gate and begins to watch whether there is a leader.
func New(options Options) *Gate {
	g := &Gate{options: options, methods: newMethods(), clients: newClientVersions(),
		places: newStreams(options.Held, options.Renewals),
		stop:   make(chan struct{}), done: make(chan struct{}), streams: make(map[*gatedStream]struct{})}
	go g.watchLeader()
	return g
}

// Close ends all streams. It may be called twice.
func (g *Gate) Close() {
	g.closing.Do(func() { close(g.stop) })
	<-g.done
}

// Method finds a method by its full name.
func (g *Gate) Method(name string) *Method { return g.methods.find(name) }

// admit checks what does not depend on the method: learners serve almost nothing, the client's version must be text,
// and a call may require a leader.
func (g *Gate) admit(ctx context.Context, kind callKind, servedByLearner bool) (requiresLeader bool, err error) {
	if !servedByLearner && g.options.Member.Learner() {
		return false, rpctypes.ErrGRPCNotSupportedForLearner
	}
	version, _ := incoming.First(ctx, rpctypes.MetadataClientAPIVersionKey)
	if !utf8.ValidString(version) {
		return false, rpctypes.ErrGRPCInvalidClientAPIVersion
	}
	g.clients.count(kind, version)
	if required, _ := incoming.First(ctx, rpctypes.MetadataRequireLeaderKey); required != rpctypes.MetadataHasLeader {
		return false, nil
	}
	if g.options.Member.Leader() == consensus.NoMember {
		return true, rpctypes.ErrGRPCNoLeader
	}
	return true, nil
}

// intact refuses what would be answered from a state that is known to be wrong: the other members serve it.
func (g *Gate) intact(method *Method) error {
	if !method.servedByCorrupt && g.options.Member.Corrupt() {
		return rpctypes.ErrGRPCCorrupt
	}
	return nil
}

// permits refuses who may not call the method. Of most methods the service decides, or the state machine.
func (g *Gate) permits(ctx context.Context, method *Method) error {
	switch method.callers {
	case ofRoot:
		return g.options.Access.Root(ctx)
	case ofRootNow:
		return g.options.Access.RootNow(ctx)
	case ofUsers:
		return g.options.Access.User(ctx)
	}
	return nil
}

// serves refuses what shows or changes what the cluster holds, while the cluster was recovered without this member.
func (g *Gate) serves(method *Method) error {
	if method.tellsOfItself {
		return nil
	}
	return etcderr.Wire(g.options.Superseded())
}

// Unary is the interceptor of the generated services; the hand-written ones pass through Pass.
func (g *Gate) Unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	method := g.methods.find(info.FullMethod)
	begun, call := g.options.Clock.Now(), &split.Call{Context: ctx}
	var response any
	err := method.Enter(g, ctx, method.servedByLearner)
	if err == nil {
		response, err = handle(call, request)
	}
	err = method.Leave(g, ctx, begun, err, call)
	return response, err
}

// Pass runs one unary call: admitted, counted and, if slow, logged. Some calls of a method that learners do not serve are
// served by them. call is the context that serve uses.
func Pass[R any](g *Gate, call *split.Call, method *Method, servedByLearner bool, serve func() (R, error)) (R, error) {
	ctx := call.Context
	begun := g.options.Clock.Now()
	var response R
	err := method.Enter(g, ctx, servedByLearner)
	if err == nil {
		response, err = serve()
	}
	err = method.Leave(g, ctx, begun, err, call)
	return response, err
}

// Enter is what Pass does before it serves a call. It waits only for methods of which the gate decides who may call them.
func (m *Method) Enter(g *Gate, ctx context.Context, servedByLearner bool) error {
	m.begin()
	err := g.serves(m)
	if err == nil {
		_, err = g.admit(ctx, callUnary, servedByLearner)
	}
	if err == nil {
		err = g.intact(m)
	}
	if err == nil {
		err = g.permits(ctx, m)
	}
	return err
}

// Leave is what Pass does afterwards. It returns the error for the client.
func (m *Method) Leave(g *Gate, ctx context.Context, begun time.Time, err error, call Insider) error {
	err = etcderr.Wire(err)
	now := g.options.Clock.Now()
	trace := g.traced(ctx, begun, now, call)
	if trace != "" && (m.callers == ofAll || Refused(err)) {
		trace = ""
	}
	m.end(err, begun, now, g.options.Histograms, trace)
	if took := now.Sub(begun); took > g.options.SlowRequest && !m.waits {
		g.logSlow(ctx, m, begun, took, err, call)
	}
	return err
}

// Refused reports whether a call ended as those of clients without a login do: etcd says InvalidArgument to them. No
// histogram shows its trace, whose id the client chose.
func Refused(err error) bool {
	switch status.Code(etcderr.Wire(err)) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument:
		return true
	}
	return false
}

// traced adds spans to the one of a call that is recorded, and returns the id of its trace; nothing if it is not recorded.
func (g *Gate) traced(ctx context.Context, begun, now time.Time, call Insider) (trace string) {
	if g.options.Tracer == nil {
		return ""
	}
	if trace = g.options.Tracer.TraceOf(ctx); trace == "" {
		return ""
	}
	if s, known := g.split(begun, now, call); known {
		g.options.Tracer.Inside(ctx, s.Spans(g.options.NameOf))
	}
	return trace
}

func (g *Gate) split(begun, now time.Time, call Insider) (split.Split, bool) {
	passage, read := call.Inside()
	return split.New(g.options.Member.ID(), begun, now, passage, read)
}

// logSlow reports a slow request in etcd's words, but not each of a flood: a warning that drowns the log warns no operator.
func (g *Gate) logSlow(
	ctx context.Context, method *Method, begun time.Time, took time.Duration, err error, call Insider,
) {
	suppressed, ok := g.slow.note(g.options.Clock.Now())
	if !ok {
		return
	}
	remote := ""
	if p, ok := peer.FromContext(ctx); ok {
		remote = p.Addr.String()
	}
	line := []any{"start time", begun, "time spent", took, "remote", remote,
		"response type", method.name, "expected", g.options.SlowRequest, "suppressed", suppressed, "err", err}
	if s, known := g.split(begun, begun.Add(took), call); known {
		line = append(line, s.Log(g.options.NameOf)...)
	}
	g.options.Logger.WarnContext(ctx, "request stats", line...)
}

// Stream is the interceptor of all streams.
func (g *Gate) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	method := g.methods.find(info.FullMethod)
	begun := g.options.Clock.Now()
	method.started.Add(1)
	requiresLeader, err := g.admit(ss.Context(), callStream, method.servedByLearner)
	if refused := g.serves(method); refused != nil {
		err = refused
	}
	if err == nil {
		err = g.intact(method)
	}
	if err == nil {
		err = g.permits(ss.Context(), method)
	}
	if err == nil {
		err = g.runBounded(srv, ss, method, requiresLeader, handle)
	}
	err = etcderr.Wire(err)
	method.end(err, begun, g.options.Clock.Now(), g.options.Histograms, "")
	return err
}

// runBounded refuses streams beyond what one address, or all, may have open.
func (g *Gate) runBounded(
	srv any, ss grpc.ServerStream, method *Method, requiresLeader bool, handle grpc.StreamHandler,
) error {
	ctx, cancel := context.WithCancelCause(ss.Context())
	defer cancel(nil)
	// Leases are renewed without logging in.
	unknown := !method.renews() && g.options.Access.State().Enabled() && g.options.Access.User(ctx) != nil
	place := &place{began: g.options.Clock.Now(), unknown: unknown, end: cancel}
	if err := g.places.enter(place, admission.CallerOf(ctx).Host, method.renews()); err != nil {
		return err
	}
	defer g.places.exit(place)
	stream := &gatedStream{ServerStream: ss, gate: g, ctx: ctx, cancel: cancel, method: method, requiresLeader: requiresLeader,
		place: place}
	return g.run(srv, stream, handle)
}

func (g *Gate) run(srv any, stream *gatedStream, handle grpc.StreamHandler) error {
	g.mu.Lock()
	g.streams[stream] = struct{}{}
	g.mu.Unlock()
	err := handle(srv, stream)
	g.mu.Lock()
	delete(g.streams, stream)
	g.mu.Unlock()
	switch cause := context.Cause(stream.ctx); cause {
	case rpctypes.ErrGRPCNoLeader, rpctypes.ErrGRPCStopped, errSilent:
		return cause
	}
	return err
}

// gatedStream is a stream that the gate can end and whose messages are counted.
type gatedStream struct {
	grpc.ServerStream
	gate           *Gate
	ctx            context.Context
	cancel         context.CancelCauseFunc
	method         *Method
	requiresLeader bool
	permitted      *auth.State // by which the caller was permitted last; of the sender
	place          *place
	spoken         bool // of the receiver
}

// Context implements grpc.ServerStream.
func (s *gatedStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream.
func (s *gatedStream) SendMsg(m any) error {
	err := s.may()
	if err == nil {
		err = s.ServerStream.SendMsg(m)
	}
	if err == nil {
		s.method.sent.Add(1)
	}
	return err
}

// Pass permits, and counts, messages that are written below the stream, many at once.
func (s *gatedStream) Pass(messages int) error {
	err := s.may()
	if err == nil {
		s.method.sent.Add(uint64(messages))
	}
	return err
}

// may reports why nothing may be sent.
func (s *gatedStream) may() error {
	if err := s.gate.intact(s.method); err != nil {
		return err
	}
	return s.permit()
}

// permit ends a stream whose caller may not have it any more.
func (s *gatedStream) permit() error {
	if s.method.callers == ofService || s.method.callers == ofAll {
		return nil
	}
	state := s.gate.options.Access.State()
	if state == s.permitted {
		return nil
	}
	err := s.gate.permits(s.ctx, s.method)
	if err == nil {
		s.permitted = state
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (s *gatedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		err = s.gate.intact(s.method)
	}
	if err == nil {
		s.method.received.Add(1)
		if !s.spoken {
			s.spoken = true
			s.gate.places.speaks(s.place)
		}
	}
	return err
}

// LeaderChanges counts the leaders that this member has seen take over.
func (g *Gate) LeaderChanges() uint64 { return g.leaderChanges.Load() }

// watchLeader ends the streams that require a leader once there was none for noLeaderTimeouts election timeouts.
func (g *Gate) watchLeader() {
	defer close(g.done)
	member := g.options.Member
	for {
		changed := member.LeaderChanged()
		var tooLong <-chan time.Time
		if member.Leader() == consensus.NoMember {
			tooLong = time.After(noLeaderTimeouts * g.options.ElectionTimeout)
		} else { // like etcd, the loss of a leader is not counted
			g.leaderChanges.Add(1)
		}
		select {
		case <-g.stop:
			g.endStreams(rpctypes.ErrGRPCStopped)
			return
		case <-changed:
		case <-tooLong:
			g.endStreams(rpctypes.ErrGRPCNoLeader)
			select {
			case <-g.stop:
				g.endStreams(rpctypes.ErrGRPCStopped)
				return
			case <-changed:
			}
		}
	}
}

func (g *Gate) endStreams(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for stream := range g.streams {
		if stream.requiresLeader || why != rpctypes.ErrGRPCNoLeader {
			stream.cancel(why)
		}
	}
}
