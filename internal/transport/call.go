package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// The frame of a call holds a hello, the length and the bytes of the method, and the body; the frame of the answer
// holds nothing but its body. Putting the hello here, not into gRPC metadata, costs nothing per call. The token, which came
// later, is a header: connections compress what is always the same.

type callerKey struct{}

// caller is who made a call.
type caller struct {
	claim     identity.Claim
	certified bool // see identity.Certified
}

// CallerClaim returns what the caller says of itself. Unless the method is an open one it was found to be true.
func CallerClaim(ctx context.Context) identity.Claim {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.claim
}

// CallerEvidence tells what speaks for the claim of the caller of an open method.
func CallerEvidence(ctx context.Context) identity.Evidence {
	if c, _ := ctx.Value(callerKey{}).(caller); c.certified {
		return identity.Certified
	}
	return identity.Said
}

// checkCall is what a listening member demands of a call: an open method may come from any process that does not take this
// member for another one, and that does not call itself a member for which it has no certificate; everything else from a
// member that the configuration binds.
func (t *Transport) checkCall(ctx context.Context, h *hello, method string) error {
	own, c := &t.options, &h.claim
	switch {
	case c.Cluster != 0 && c.Cluster != own.Self.Cluster:
		return t.turnAway(c, identity.ForeignCluster, identity.OtherCluster(c, &own.Self))
	case h.to != consensus.NoMember && h.to != own.Self.Member:
		return fmt.Errorf("%w: it wants %s, this member is %s", ErrWrongMember, h.to, own.Self.Member)
	case method == methodFind, method == methodConfirm:
		return nil
	case slices.Contains(own.OpenMethods, method):
		if c.Member == consensus.NoMember {
			return nil
		}
		return t.certified(ctx, c)
	case c.Member == consensus.NoMember || c.Cluster == 0:
		return t.turnAway(c, identity.Anonymous, fmt.Sprintf("%q is for members only, and the caller does not say which one "+
			"it is", method))
	}
	if err := t.certified(ctx, c); err != nil {
		return err
	}
	tokenOf(ctx, &h.token)
	evidence := t.evidenceOf(ctx, h)
	if err := t.welcome(ctx, c, evidence); err != nil {
		return err
	}
	config := t.guard.config.Load()
	switch binding := config.BindingOf(c.Member, c.Storage); {
	case binding == consensus.BindingNone, binding == consensus.BindingNonMember && config.Binds():
		return t.turnAway(c, identity.Unbound, fmt.Sprintf("%q is for members only, and %v is not bound to its data directory "+
			"in the configuration of this member (%v) yet: try again", method, c.Member, own.Self.Member))
	}
	if !t.hears(c, evidence) && !slices.Contains(own.MovedMethods, method) {
		return t.turnAway(c, identity.Unproved, fmt.Sprintf("%q is for members only, and nobody answers for the caller at the "+
			"address that this member (%v) has of %v", method, own.Self.Member, c.Member))
	}
	return nil
}

// Call asks a peer and waits for its answer, which has at most so many bytes: a larger one is false, and is not read. The error
// is a grpc status: the handler's own, or codes.Unavailable if the peer is not connected. A peer that we have only begun to
// dial is waited for.
func (t *Transport) Call(ctx context.Context, to consensus.MemberID, method string, body []byte, most int) ([]byte, error) {
	p := t.peer(to)
	if p == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownPeer, to)
	}
	if t.cut(to) {
		return nil, status.Error(codes.Unavailable, ErrCut.Error())
	}
	select {
	case <-p.express.tried:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-t.ctx.Done():
		return nil, status.Error(codes.Unavailable, ErrClosed.Error())
	}
	conn := p.express.conn.Load()
	if conn == nil {
		return nil, status.Errorf(codes.Unavailable, "transport: peer %s is not connected", to)
	}
	return call(ctx, conn.ClientConn, p.hello(streamNone), method, body, most)
}

// CallURL asks the process that listens at a peer URL, over a connection of its own; see Call.
func (t *Transport) CallURL(ctx context.Context, url, method string, body []byte, most int) ([]byte, error) {
	h := t.hello(consensus.NoMember, streamNone)
	for _, p := range *t.peers.Load() {
		if slices.Contains(p.addresses(), url) {
			h.token = p.token
		}
	}
	return callURL(ctx, &t.options, h, url, method, body, most)
}

// CallURL is for a process that has no Transport yet because it does not know who it is: of the options, those of TLS and
// time are used, and Cluster, Storage and Address, so far as they are known.
func CallURL(ctx context.Context, o Options, url, method string, body []byte, most int) ([]byte, error) {
	o.setDefaults()
	known := identity.Claim{Cluster: o.Self.Cluster, Storage: o.Self.Storage, Address: o.Self.Address}
	h := hello{version: protocolVersion, claim: known}
	return callURL(ctx, &o, h, url, method, body, most)
}

func callURL(ctx context.Context, o *Options, h hello, url, method string, body []byte, most int) ([]byte, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if a.secure && o.TLS.forDialling() == nil {
		return nil, fmt.Errorf("%w: %q", ErrNeedsTLS, url)
	}
	conn, err := newCallConn(o, url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return call(ctx, conn, h, method, body, most)
}

// newCallConn prepares a connection to the process that listens at a peer URL, which may send little that is not read.
func newCallConn(o *Options, url string) (*grpc.ClientConn, error) {
	return newConn(o, func(ctx context.Context) (net.Conn, error) {
		return dialURL(ctx, url, o.TLS.forDialling(), o.Times.Dial)
	}, o.Times.Dial, callWindowBytes)
}

func call(ctx context.Context, conn *grpc.ClientConn, h hello, method string, body []byte, most int) ([]byte, error) {
	frame := beginFrame(make([]byte, 0, frameHeaderBytes+helloMaxBytes+2+len(method)+len(body)), frameCall)
	frame = h.append(frame)
	frame = binary.AppendUvarint(frame, uint64(len(method)))
	frame = append(append(frame, method...), body...)
	sealFrame(frame)
	var answer inFrame
	if h.token != (token{}) {
		ctx = metadata.AppendToOutgoingContext(ctx, tokenHeader, string(h.token[:]))
	}
	err := conn.Invoke(ctx, callMethod, &outFrame{plain: frame}, &answer, grpc.MaxCallRecvMsgSize(frameHeaderBytes+most))
	if oversized(err) {
		return nil, fmt.Errorf("%w, which has %d bytes at most to %q (%w)", ErrLargeAnswer, most, method, err)
	}
	if err != nil {
		return nil, err
	}
	kind, answered, err := openFrame(answer.bytes)
	if err != nil {
		return nil, err
	}
	if kind != frameAnswer {
		return nil, outOfPlace(kind, "instead of an answer")
	}
	return answered, nil
}

// oversized reports whether gRPC did not read a message because of its size.
func oversized(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.HasPrefix(status.Convert(err).Message(), "grpc: ")
}

// maxOpenBytes bounds the requests that any process may make: a name, some URLs and a token.
const maxOpenBytes = 64 << 10

func (t *Transport) serveCall(ctx context.Context, decode func(any) error) (any, error) {
	from := admitterOf(ctx)
	answer, err := t.answerCall(ctx, from, decode)
	if err != nil {
		return nil, err
	}
	countAnswer(from, answer)
	return answer, nil
}

func (t *Transport) answerCall(ctx context.Context, from ConnAdmitter, decode func(any) error) (*outFrame, error) {
	from.Hold(streamBytes)
	defer from.Hold(-streamBytes)
	var frame inFrame
	if err := t.first.Receive(ctx, func() error { return decode(&frame) }); err != nil {
		return nil, err
	}
	// The question counts until it is answered: the caller may have to be confirmed first, and may be no member.
	defer from.Hold(-int64(messagePrefixBytes + len(frame.bytes)))
	h, method, body, err := decodeCall(frame.bytes)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if t.cut(h.claim.Member) {
		return nil, status.Error(codes.Unavailable, ErrCut.Error())
	}
	if err := t.checkCall(ctx, &h, method); err != nil {
		return nil, t.refuse(ctx, h, err)
	}
	if slices.Contains(t.options.OpenMethods, method) && len(body) > maxOpenBytes {
		return nil, status.Errorf(codes.InvalidArgument, "transport: a request of %d bytes to %q, which has %d at most",
			len(body), method, maxOpenBytes)
	}
	switch method {
	case methodFind:
		return t.found(body), nil
	case methodConfirm:
		sum, err := t.confirm(h.claim.Member, body)
		return answerFrame(sum), err
	}
	t.meet(ctx, h.claim.Member)
	ctx = context.WithValue(ctx, callerKey{}, caller{h.claim, t.bound(ctx, &h.claim, method)})
	answer, err := t.options.Handler.Call(ctx, method, body)
	if err != nil {
		if _, ok := status.FromError(err); !ok && ctx.Err() != nil {
			err = status.FromContextError(ctx.Err()).Err()
		}
		return nil, err
	}
	return answerFrame(answer), nil
}

func answerFrame(answer []byte) *outFrame {
	out := beginFrame(make([]byte, 0, frameHeaderBytes+len(answer)), frameAnswer)
	out = append(out, answer...)
	sealFrame(out)
	return &outFrame{plain: out}
}

func decodeCall(frame []byte) (h hello, method string, body []byte, err error) {
	kind, rest, err := openFrame(frame)
	if err != nil {
		return hello{}, "", nil, err
	}
	if kind != frameCall {
		return hello{}, "", nil, outOfPlace(kind, "instead of a call")
	}
	if h, rest, err = decodeHello(rest); err != nil {
		return hello{}, "", nil, err
	}
	length, n := binary.Uvarint(rest)
	if n <= 0 || length > uint64(len(rest)-n) {
		return hello{}, "", nil, fmt.Errorf("%w: method of a call", ErrCorruptFrame)
	}
	rest = rest[n:]
	return h, string(rest[:length]), rest[length:], nil
}
