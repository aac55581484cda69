package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
)

// The frame of a call holds a hello, the length and the bytes of the method, and the body; the frame of the answer
// holds nothing but its body. Putting the hello here, not into gRPC metadata, costs nothing per call.

type callerKey struct{}

// Caller returns the member that made the call whose context ctx is; NoMember for one that is not a member yet.
func Caller(ctx context.Context) consensus.MemberID {
	id, _ := ctx.Value(callerKey{}).(consensus.MemberID)
	return id
}

// Call asks a peer and waits for its answer. The error is a grpc status: the handler's own, or codes.Unavailable if
// the peer is not connected. A peer that we have only begun to dial is waited for.
func (t *Transport) Call(ctx context.Context, to consensus.MemberID, method string, body []byte) ([]byte, error) {
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
	return call(ctx, conn.ClientConn, t.hello(to, laneNone), method, body)
}

// CallURL asks whoever listens at a peer URL, over a connection of its own.
func (t *Transport) CallURL(ctx context.Context, url, method string, body []byte) ([]byte, error) {
	return callURL(ctx, &t.options, t.hello(consensus.NoMember, laneNone), url, method, body)
}

// CallURL is for a process that has no Transport yet because it does not know its cluster: only the TLS and time
// options are used.
func CallURL(ctx context.Context, o Options, url, method string, body []byte) ([]byte, error) {
	o.setDefaults()
	return callURL(ctx, &o, hello{version: protocolVersion}, url, method, body)
}

func callURL(ctx context.Context, o *Options, h hello, url, method string, body []byte) ([]byte, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if a.secure && o.clientTLS() == nil {
		return nil, fmt.Errorf("%w: %q", ErrNeedsTLS, url)
	}
	conn, err := newConn(o, func(ctx context.Context) (net.Conn, error) {
		return dialURL(ctx, url, o.clientTLS(), o.DialTimeout)
	}, o.DialTimeout)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return call(ctx, conn, h, method, body)
}

func call(ctx context.Context, conn *grpc.ClientConn, h hello, method string, body []byte) ([]byte, error) {
	frame := beginFrame(make([]byte, 0, frameHeaderBytes+helloBytes+2+len(method)+len(body)), frameCall)
	frame = h.append(frame)
	frame = binary.AppendUvarint(frame, uint64(len(method)))
	frame = append(append(frame, method...), body...)
	sealFrame(frame)
	var answer inFrame
	if err := conn.Invoke(ctx, callMethod, &outFrame{plain: frame}, &answer); err != nil {
		return nil, err
	}
	kind, answered, err := openFrame(answer.bytes)
	if err != nil {
		return nil, err
	}
	if kind != frameAnswer {
		return nil, fmt.Errorf("%w: frame kind %d instead of an answer", ErrCorruptFrame, kind)
	}
	return answered, nil
}

func (t *Transport) serveCall(ctx context.Context, decode func(any) error) (any, error) {
	var frame inFrame
	if err := decode(&frame); err != nil {
		return nil, err
	}
	h, method, body, err := decodeCall(frame.bytes)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := h.checkCall(t.options.Self, t.options.Cluster); err != nil {
		t.noteRefusal(h, err)
		return nil, refusal(err)
	}
	if t.cut(h.from) {
		return nil, status.Error(codes.Unavailable, ErrCut.Error())
	}
	t.meet(ctx, h.from)
	answer, err := t.options.Handler.Call(context.WithValue(ctx, callerKey{}, h.from), method, body)
	if err != nil {
		if _, ok := status.FromError(err); !ok && ctx.Err() != nil {
			err = status.FromContextError(ctx.Err()).Err()
		}
		return nil, err
	}
	out := beginFrame(make([]byte, 0, frameHeaderBytes+len(answer)), frameAnswer)
	out = append(out, answer...)
	sealFrame(out)
	return &outFrame{plain: out}, nil
}

func decodeCall(frame []byte) (h hello, method string, body []byte, err error) {
	kind, rest, err := openFrame(frame)
	if err != nil {
		return hello{}, "", nil, err
	}
	if kind != frameCall {
		return hello{}, "", nil, fmt.Errorf("%w: frame kind %d instead of a call", ErrCorruptFrame, kind)
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

// pace spreads bytes over time: it tells how long to wait before more may be sent.
type pace struct {
	perSecond int64
	next      time.Time
}

// after notes that bytes were sent at now. Time that was not used is not saved up for a burst.
func (p *pace) after(now time.Time, bytes int) time.Duration {
	if p.perSecond <= 0 {
		return 0
	}
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(float64(bytes) / float64(p.perSecond) * float64(time.Second)))
	return p.next.Sub(now)
}
