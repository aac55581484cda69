package rpc

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/admission"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// gate is what every call passes: it admits it or not, counts it and, if it asked for a leader, ends it when there
// has been none for too long.
type gate struct {
	s       *Services
	closing sync.Once
	stop    chan struct{}
	done    chan struct{}

	mu      sync.Mutex
	streams map[*gatedStream]struct{}
}

// noLeaderTimeouts is how many election timeouts a stream that requires a leader survives without one. It is
// more than one because a stream costs more to set up again than a refused call.
const noLeaderTimeouts = 3

func newGate(s *Services) *gate {
	g := &gate{s: s, stop: make(chan struct{}), done: make(chan struct{}), streams: make(map[*gatedStream]struct{})}
	go g.watchLeader()
	return g
}

func (g *gate) close() {
	g.closing.Do(func() { close(g.stop) })
	<-g.done
}

// admit checks what does not depend on the method: learners serve almost nothing, the client's version must be text,
// and a call may require a leader.
func (g *gate) admit(ctx context.Context, kind callKind, servedByLearner bool) (requiresLeader bool, err error) {
	if !servedByLearner && g.isLearner() {
		return false, rpctypes.ErrGRPCNotSupportedForLearner
	}
	version := ""
	if values := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataClientAPIVersionKey); len(values) > 0 {
		if version = values[0]; !utf8.ValidString(version) {
			return false, rpctypes.ErrGRPCInvalidClientAPIVersion
		}
	}
	g.s.stats.countClient(kind, version)
	values := metadata.ValueFromIncomingContext(ctx, rpctypes.MetadataRequireLeaderKey)
	if len(values) == 0 || values[0] != rpctypes.MetadataHasLeader {
		return false, nil
	}
	if g.s.options.Member.Leader() == consensus.NoMember {
		return true, rpctypes.ErrGRPCNoLeader
	}
	return true, nil
}

// intact refuses what would be answered from a state that is known to be wrong: the other members serve it.
func (g *gate) intact(stats *methodStats) error {
	if !stats.servedByCorrupt && g.s.options.Member.Corrupt() {
		return rpctypes.ErrGRPCCorrupt
	}
	return nil
}

// serves refuses what shows or changes what the cluster holds, while the cluster was recovered without this member.
func (g *gate) serves(method *methodStats) error {
	if method.tellsOfItself {
		return nil
	}
	return etcderr.Wire(g.s.options.Superseded())
}

// isLearner tells whether this member was added as a learner. One that was added as a voter serves from the start, as
// clients expect of a member that says it is ready; it forwards what it may not decide.
func (g *gate) isLearner() bool { return g.s.options.Member.Learner() }

// unary is the interceptor of the generated services; the hand-written ones pass through pass.
func (g *gate) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	stats := g.s.stats.method(info.FullMethod)
	return pass(g.s, ctx, stats, stats.servedByLearner, func() (any, error) {
		return handle(ctx, request)
	})
}

// pass runs one unary call: admitted, counted and, if slow, logged.
func pass[R any](
	s *Services, ctx context.Context, stats *methodStats, servedByLearner bool, serve func() (R, error),
) (R, error) {
	begun := s.options.Clock.Now()
	stats.begin()
	var response R
	err := s.gate.serves(stats)
	if err == nil {
		_, err = s.gate.admit(ctx, callUnary, servedByLearner)
	}
	if err == nil {
		err = s.gate.intact(stats)
	}
	if err == nil {
		response, err = serve()
	}
	err = etcderr.Wire(err)
	took := s.options.Clock.Now().Sub(begun)
	stats.end(err, took, s.options.ExtensiveMetrics)
	if took > s.options.SlowRequest {
		s.logSlow(ctx, stats, took, err)
	}
	return response, err
}

// logSlow reports a slow request, but not each of a flood: a warning that drowns the log warns nobody.
func (s *Services) logSlow(ctx context.Context, stats *methodStats, took time.Duration, err error) {
	suppressed, ok := s.stats.slow.note(s.options.Clock.Now())
	if !ok {
		return
	}
	s.options.Logger.WarnContext(ctx, "slow request",
		"method", stats.name, "took", took, "expected", s.options.SlowRequest, "suppressed", suppressed, "err", err)
}

// stream is the interceptor of all streams.
func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	stats := g.s.stats.method(info.FullMethod)
	begun := g.s.options.Clock.Now()
	stats.started.Add(1)
	requiresLeader, err := g.admit(ss.Context(), callStream, stats.servedByLearner)
	if refused := g.serves(stats); refused != nil {
		err = refused
	}
	if err == nil {
		err = g.intact(stats)
	}
	if err == nil {
		err = g.runBounded(srv, ss, stats, requiresLeader, handle)
	}
	err = etcderr.Wire(err)
	stats.end(err, g.s.options.Clock.Now().Sub(begun), g.s.options.ExtensiveMetrics)
	return err
}

// runBounded refuses streams beyond what one address, or all, may have open.
func (g *gate) runBounded(
	srv any, ss grpc.ServerStream, stats *methodStats, requiresLeader bool, handle grpc.StreamHandler,
) error {
	leave, entered := g.s.bounds.streams.Enter(admission.CallerOf(ss.Context()).Host)
	if !entered {
		return errTooManyStreams
	}
	defer leave()
	return g.run(srv, ss, stats, requiresLeader, handle)
}

func (g *gate) run(
	srv any, ss grpc.ServerStream, stats *methodStats, requiresLeader bool, handle grpc.StreamHandler,
) error {
	ctx, cancel := context.WithCancelCause(ss.Context())
	defer cancel(nil)
	stream := &gatedStream{ServerStream: ss, gate: g, ctx: ctx, cancel: cancel, stats: stats, requiresLeader: requiresLeader}
	g.mu.Lock()
	g.streams[stream] = struct{}{}
	g.mu.Unlock()
	err := handle(srv, stream)
	g.mu.Lock()
	delete(g.streams, stream)
	g.mu.Unlock()
	if cause := context.Cause(ctx); cause == rpctypes.ErrGRPCNoLeader || cause == rpctypes.ErrGRPCStopped {
		return cause
	}
	return err
}

// gatedStream is a stream that the gate can end and whose messages are counted.
type gatedStream struct {
	grpc.ServerStream
	gate           *gate
	ctx            context.Context
	cancel         context.CancelCauseFunc
	stats          *methodStats
	requiresLeader bool
}

// Context implements grpc.ServerStream.
func (s *gatedStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream.
func (s *gatedStream) SendMsg(m any) error {
	err := s.gate.intact(s.stats)
	if err == nil {
		err = s.ServerStream.SendMsg(m)
	}
	if err == nil {
		s.stats.sent.Add(1)
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (s *gatedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		err = s.gate.intact(s.stats)
	}
	if err == nil {
		s.stats.received.Add(1)
	}
	return err
}

// watchLeader ends the streams that require a leader once there was none for noLeaderTimeouts election timeouts.
func (g *gate) watchLeader() {
	defer close(g.done)
	member := g.s.options.Member
	for {
		changed := member.LeaderChanged()
		var patience <-chan time.Time
		if member.Leader() == consensus.NoMember {
			patience = time.After(noLeaderTimeouts * g.s.options.ElectionTimeout)
		}
		select {
		case <-g.stop:
			g.endStreams(rpctypes.ErrGRPCStopped)
			return
		case <-changed:
			g.s.stats.leaderChanges.Add(1)
		case <-patience:
			g.endStreams(rpctypes.ErrGRPCNoLeader)
			select {
			case <-g.stop:
				g.endStreams(rpctypes.ErrGRPCStopped)
				return
			case <-changed:
				g.s.stats.leaderChanges.Add(1)
			}
		}
	}
}

func (g *gate) endStreams(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for stream := range g.streams {
		if stream.requiresLeader || why != rpctypes.ErrGRPCNoLeader {
			stream.cancel(why)
		}
	}
}
