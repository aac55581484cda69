package grpcproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/admission"
)

var (
	errTooManyCalls = status.Error(codes.ResourceExhausted,
		"quorate: too many calls are open at this proxy, or of this address")
	errNoMessage = status.Error(codes.Internal, "quorate: the call ended without a request")
)

// anyStream describes every call: one with a single message in a direction is a stream of one.
var anyStream = grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// forwarder passes calls on to the members.
type forwarder struct {
	members *grpc.ClientConn
	options []grpc.CallOption
	names   namespace
	naming  *naming
	counts  *counts
	log     *slog.Logger // of calls; nil: none are logged

	calls, held *admission.HostBound
	first       *admission.FirstMessages
}

// handle is the handler of all calls.
func (f *forwarder) handle(_ any, client grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(client)
	m := methodOf(name)
	began := time.Now()
	f.counts.began(m)
	err := f.admit(m, name, client)
	f.counts.ended(m, status.Code(err))
	if f.log != nil {
		f.log.Info("call", "method", name, "from", admission.CallerOf(client.Context()).Address,
			"code", status.Code(err).String(), "took", time.Since(began), "err", err)
	}
	return err
}

func (f *forwarder) admit(m *method, name string, client grpc.ServerStream) error {
	host := admission.CallerOf(client.Context()).Host
	leave, entered := f.calls.Enter(host)
	if !entered {
		return errTooManyCalls
	}
	defer leave()
	if err := f.names.admits(m, name); err != nil {
		return err
	}
	c := &call{forwarder: f, method: m, host: host, client: client}
	if m.clientStreams {
		return c.forward(name, nil)
	}
	var first frame
	if err := f.first.Receive(client.Context(), func() error { return c.receive(&first) }); err != nil {
		if errors.Is(err, io.EOF) {
			return errNoMessage
		}
		return err
	}
	if name == memberList && f.naming.URL != "" {
		first.drop()
		return c.answerMemberList()
	}
	return c.forward(name, &first)
}

// call is one call that is forwarded.
type call struct {
	*forwarder
	method *method
	host   string
	client grpc.ServerStream
	member grpc.ClientStream // the call at a member

	refused atomic.Pointer[error] // why the client's messages are not passed on any more
}

// forward opens the call at a member, and passes on what both sides say until the member ends it.
func (c *call) forward(name string, first *frame) error {
	incoming, _ := metadata.FromIncomingContext(c.client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(c.client.Context(), passedOn(incoming)))
	defer cancel()
	var err error
	if c.member, err = c.members.NewStream(ctx, &anyStream, name, c.options...); err != nil {
		if first != nil {
			first.drop()
		}
		return err
	}
	if first != nil { // there is no other
		if err := c.send(first); err == nil {
			_ = c.member.CloseSend() // the responses say what is wrong
		}
		return c.passResponses()
	}
	// It ends with the call: gRPC ends the client's stream when this returns.
	go func() {
		if err := c.passRequests(); err != nil {
			cancel()
		}
	}()
	return c.passResponses()
}

// send passes a message on to the member. If that fails the member has ended the call, and its responses say why.
func (c *call) send(f *frame) error {
	err := c.member.SendMsg(f)
	f.drop() // what gRPC did not take
	return err
}

// receive reads the next message of the client.
func (c *call) receive(f *frame) error {
	if err := c.client.RecvMsg(f); err != nil {
		return err
	}
	c.counts.received(c.method)
	return c.take(f, c.names.request)
}

// take counts a message among those that are held, after what a namespace does to it.
func (c *call) take(f *frame, change func(*method, *frame) error) error {
	if size := f.data.Len(); size >= freeBytes && c.names.reads(c.method) {
		leave, entered := c.held.EnterAs(c.host, readCopies*size)
		if !entered {
			f.drop()
			return errTooMuchHeld
		}
		defer leave()
	}
	if err := change(c.method, f); err != nil {
		f.drop()
		return err
	}
	return f.hold(c.held, c.host)
}

// passRequests passes on what the client says. It returns an error if the client is gone, or said what it may not.
func (c *call) passRequests() error {
	for {
		var f frame
		if err := c.receive(&f); errors.Is(err, io.EOF) {
			return c.member.CloseSend()
		} else if err != nil {
			c.refused.Store(&err)
			return err
		}
		if c.send(&f) != nil {
			return nil
		}
	}
}

// passResponses passes on what the member says, and returns how it ends the call.
func (c *call) passResponses() error {
	header, err := c.member.Header()
	if err == nil && header != nil {
		if err := c.client.SendHeader(passedOn(header)); err != nil {
			return err
		}
	}
	for {
		var f frame
		err := c.member.RecvMsg(&f)
		if err != nil {
			c.client.SetTrailer(passedOn(c.member.Trailer()))
			if errors.Is(err, io.EOF) {
				return nil
			}
			if refused := c.refused.Load(); refused != nil {
				return *refused // it is why the call was ended
			}
			return err
		}
		if err := c.take(&f, c.names.response); err != nil {
			return err
		}
		c.counts.sent(c.method)
		err = c.client.SendMsg(&f)
		f.drop()
		if err != nil {
			return err
		}
	}
}

// answerMemberList names the proxies instead of the members, as etcd's does: clients that update their endpoints stay with
// them.
func (c *call) answerMemberList() error {
	encoded, err := proto.Marshal(&pb.MemberListResponse{Members: c.naming.list()})
	if err != nil {
		return err
	}
	c.counts.sent(c.method)
	return c.client.SendMsg(&frame{data: mem.BufferSlice{mem.SliceBuffer(encoded)}})
}

// passedOn are the metadata that belong to the call, and not to one of the two connections.
func passedOn(md metadata.MD) metadata.MD {
	out := make(metadata.MD, len(md))
	for key, values := range md {
		switch {
		case strings.HasPrefix(key, ":"), strings.HasPrefix(key, "grpc-"):
		case key == "content-type", key == "user-agent", key == "te", key == "connection", key == "host":
		default:
			out[key] = values
		}
	}
	return out
}
