package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const (
	serviceName    = "quorate.Peer"
	messagesMethod = "/" + serviceName + "/Messages"
	snapshotMethod = "/" + serviceName + "/Snapshot"
	callMethod     = "/" + serviceName + "/Call"

	// Windows of flow control, at most.
	streamWindowBytes = 4 << 20
	connWindowBytes   = 2 * streamWindowBytes
	// callWindowBytes is that of a connection for one call: most answers fit in it.
	callWindowBytes = 64 << 10

	// handshakeTimeout bounds how long a connection may take until it speaks HTTP/2, maxPeerStreams how many streams
	// and calls it may have open: a member has two streams, a snapshot, and calls.
	handshakeTimeout = 10 * time.Second
	maxPeerStreams   = 256
	// maxHeaderBytes bounds the headers of a call, unpacked: compressed ones grow thousandfold (RFC 7541, section 7.3).
	maxHeaderBytes = 16 << 10
	// answerHeaderBytes bounds the headers of an answer likewise. They have the text of an error.
	answerHeaderBytes = 64 << 10
	// wayBackBytes is the largest message that a member sends back over a stream which another process has opened to it: one
	// that is not a peer yet, or no more.
	wayBackBytes = 4 << 20
)

var (
	messagesDesc = grpc.StreamDesc{StreamName: "Messages", ServerStreams: true, ClientStreams: true,
		Handler: func(t any, s grpc.ServerStream) error { return t.(*Transport).serveMessages(s) }}
	snapshotDesc = grpc.StreamDesc{StreamName: "Snapshot", ServerStreams: true, ClientStreams: true,
		Handler: func(t any, s grpc.ServerStream) error { return t.(*Transport).serveSnapshot(s) }}
	serviceDesc = grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{messagesDesc, snapshotDesc},
		Methods: []grpc.MethodDesc{{MethodName: "Call",
			Handler: func(t any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return t.(*Transport).serveCall(ctx, decode)
			}}},
	}
)

func newServer(t *Transport) *grpc.Server {
	s := grpc.NewServer(
		grpc.Creds(tlsconn.Credentials()),
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(maxFrameBytes), grpc.MaxSendMsgSize(maxFrameBytes),
		grpc.StaticStreamWindowSize(t.options.streamWindow()), grpc.StaticConnWindowSize(2*t.options.streamWindow()),
		grpc.RPCDecompressor(noCompression{}), //nolint:staticcheck // nothing else takes what the registry has from a server
		grpc.SharedWriteBuffer(true),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxConcurrentStreams(maxPeerStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(t.first.Tap),
		// A peer that pings us as it should is never silent for so long.
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: t.options.Times.IdleAfter,
			Time:              max(time.Second, t.options.Times.DeadAfter), Timeout: t.options.Times.DeadAfter}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	s.RegisterService(&serviceDesc, t)
	return s
}

// streamKey names a stream that a member opened to us: it has one of each kind. Those who only say that they are the member
// have another one, so that none of them takes the place of the member's.
type streamKey struct {
	from consensus.MemberID
	kind streamKind
	said bool
}

// incoming is such a stream. The way back carries pongs, and messages to members that are not our peers.
type incoming struct {
	box      *outbox
	end      context.CancelCauseFunc
	kind     streamKind
	claim    identity.Claim
	token    token
	evidence identity.Evidence // under the lock of the Transport
	ended    bool              // under the lock of the Transport: it was released
	heard    monotime.Atomic   // when something arrived on it last
}

// errSuperseded ends a stream whose sender opened a newer one: it noticed the break before we did.
var errSuperseded = errors.New("transport: superseded by a newer stream")

// serveMessages is the life of an incoming stream.
func (t *Transport) serveMessages(opened grpc.ServerStream) error {
	s, done := countStream(opened)
	defer done()
	h, evidence, unpack, err := t.accept(s)
	if err != nil {
		return err
	}
	if h.kind != streamOrdered && h.kind != streamExpress {
		unpack.close()
		return refusal(fmt.Errorf("%w: stream kind %d", ErrHandshake, h.kind))
	}
	ctx, end := context.WithCancelCause(s.Context())
	defer end(nil)
	from := h.claim.Member
	in := &incoming{box: newOutbox(limits{messages: 1024, bytes: wayBackBytes, largest: wayBackBytes}), end: end,
		kind: h.kind, claim: h.claim, token: h.token, evidence: evidence}
	in.box.hold = s.from.Hold
	in.box.attach(true)
	generation := uint64(0)
	if p := t.peer(from); p != nil {
		generation = p.generation.Load()
	}
	t.adopt(in)
	defer t.release(in)

	r := reader{t: t, ctx: ctx, claim: &in.claim, in: in, stream: s, box: in.box, heard: &in.heard, unpack: unpack,
		admit: s.from.Admit, hold: s.from.Hold}
	t.running.Go(func() {
		defer unpack.close()
		defer r.end()
		r.admitKnown()
		end(r.run())
	})
	var unused counters
	w := writer{t: t, to: from, stream: s, box: in.box, count: &unused}
	err = w.run(ctx)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, io.EOF):
		return nil
	case errors.Is(cause, errSuperseded):
		return status.Error(codes.Aborted, cause.Error())
	case cause != nil:
		err = cause
	}
	if p := t.peer(from); p != nil && t.believes(in) {
		p.lost(generation, err)
	}
	var named *identity.Refusal
	if errors.As(err, &named) {
		return refusal(err)
	}
	switch {
	case errors.Is(err, ErrCorruptFrame):
		return status.Error(codes.DataLoss, err.Error())
	case errors.Is(err, level.ErrLater):
		return status.Error(codes.Unimplemented, err.Error())
	}
	return err
}

// accept reads and judges the hello of a stream and answers it. The caller closes what unpacks the frames that follow.
func (t *Transport) accept(s grpc.ServerStream) (hello, identity.Evidence, *unpacker, error) {
	var first inFrame
	if err := t.first.Receive(s.Context(), func() error { return s.RecvMsg(&first) }); err != nil {
		return hello{}, identity.Said, nil, err
	}
	evidence := identity.Said
	h, err := decodeHelloFrame(first.bytes)
	if err == nil {
		err = h.check(t.options.Self.Member)
	}
	if err == nil && t.cut(h.claim.Member) {
		return hello{}, identity.Said, nil, status.Error(codes.Unavailable, ErrCut.Error())
	}
	if err == nil {
		err = t.certified(s.Context(), &h.claim)
	}
	if err == nil {
		evidence = t.evidenceOf(s.Context(), &h)
		err = t.welcome(s.Context(), &h.claim, evidence)
	}
	if err != nil {
		return hello{}, identity.Said, nil, t.refuse(s.Context(), h, err)
	}
	t.meet(s.Context(), h.claim.Member)
	answer := t.hello(h.claim.Member, h.kind)
	var unpack *unpacker
	if h.kind != streamExpress { // small messages, and few of them
		unpack = newUnpacker(&t.options.Packing, &t.packs, !t.knows(&h.claim, evidence))
	}
	answer.can = unpack.bits()
	if err := s.SendMsg(&outFrame{plain: answer.frame()}); err != nil {
		unpack.close()
		return hello{}, identity.Said, nil, err
	}
	return h, evidence, unpack, nil
}

// refuse logs which process was refused, and returns what it is told; a process that went meanwhile was not refused.
func (t *Transport) refuse(ctx context.Context, h hello, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	from, text := h.claim.Member, cut(err.Error())
	if suppressed, ok := t.refusals.next(from, text, time.Now()); ok {
		t.logger.Error("refused a connection", "peer", from.String(), "address", cut(h.claim.Address), "err", text,
			"suppressed", suppressed)
	}
	return refusal(err)
}

// unheard logs that nothing is taken of a process that bears an id which no known member confirms.
func (t *Transport) unheard(c *identity.Claim) {
	t.guard.refusals[identity.Unproved].Add(1)
	if t.guard.config.Load().Contains(c.Member) {
		return // the process at its address may confirm it yet; it has told where it is
	}
	const text = "its id is in no configuration that this member knows; where the members are it asks those that it knows. " +
		"If it finds none of them, and hears no leader, see `quorate set-address --help`"
	if suppressed, ok := t.refusals.next(c.Member, text, time.Now()); ok {
		t.logger.Warn("a process that calls itself a member is not heard", "peer", c.Member.String(), "address", cut(c.Address),
			"why", text, "suppressed", suppressed)
	}
}

// key is where the stream is kept. t.mu is held.
func (t *Transport) key(in *incoming) streamKey {
	return streamKey{from: in.claim.Member, kind: in.kind, said: !in.evidence.Believed(t.guard.rules)}
}

// adopt makes in the stream of its sender. A stream that answers proves that the peer is alive: ours to it need not
// wait out their backoff.
func (t *Transport) adopt(in *incoming) {
	from := in.claim.Member
	t.mu.Lock()
	if in.ended { // while a member confirmed it
		t.mu.Unlock()
		return
	}
	key := t.key(in)
	older := t.incoming[key]
	t.incoming[key] = in
	t.mu.Unlock()
	t.refusals.forget(from)
	if older != nil {
		older.end(errSuperseded)
	}
	if p := t.peer(from); p != nil && !key.said {
		p.ordered.retryNow()
		p.express.retryNow()
	}
}

// promote makes a stream, that a member confirms now, that of its sender.
func (t *Transport) promote(in *incoming) {
	t.mu.Lock()
	if t.incoming[t.key(in)] == in {
		delete(t.incoming, t.key(in))
	}
	in.evidence = identity.Dialled
	t.mu.Unlock()
	t.adopt(in)
}

func (t *Transport) believes(in *incoming) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return in.evidence.Believed(t.guard.rules)
}

func (t *Transport) release(in *incoming) {
	in.box.close()
	in.box.take(nil, nil)
	in.box.sent()
	t.mu.Lock()
	defer t.mu.Unlock()
	in.ended = true
	if key := t.key(in); t.incoming[key] == in {
		delete(t.incoming, key)
	}
}
