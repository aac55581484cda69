package grpcproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/limits/admission"
)

var (
	errTooManyCalls = status.Error(codes.ResourceExhausted,
		"quorate: too many calls are open at this proxy, or of this address: --memory of the proxy bounds them")
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

	held, renewals *admission.Ledger
	first          *admission.FirstMessages
	open           atomic.Int64 // calls
	refused        atomic.Uint64
}

const (
	// callBytes is what a call takes: goroutines and streams at both sides, and a small message.
	callBytes = 32 << 10
	// windowBytes is how much a member may send on a stream that is not read for.
	windowBytes = 64 << 10
	// readPatience is how long a message may wait for its client until the window is counted that fills behind it.
	readPatience = 20 * time.Millisecond
)

// counts returns how many calls are open, and how many were refused.
func (f *forwarder) callCounts() (open int, refused uint64) {
	return int(f.open.Load()), f.refused.Load()
}

// describe tells what is to be known of a method before its handler is called.
func (f *forwarder) describe(name string) *grpc.StreamDesc {
	return &grpc.StreamDesc{Handler: f.handle, ServerStreams: true, ClientStreams: methodOf(name).clientStreams}
}

// enter takes room for a call. Those that renew leases have some of their own when there is no other.
func (f *forwarder) enter(host, name string) (leave func(), entered bool) {
	if leave, entered = f.held.Enter(host, callBytes); !entered && name == pb.Lease_LeaseKeepAlive_FullMethodName {
		leave, entered = f.renewals.Enter(host, callBytes)
	}
	if !entered {
		f.refused.Add(1)
	}
	return leave, entered
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
	leave, entered := f.enter(host, name)
	if !entered {
		return errTooManyCalls
	}
	defer leave()
	f.open.Add(1)
	defer f.open.Add(-1)
	if err := f.names.admits(m, name); err != nil {
		return err
	}
	c := &call{forwarder: f, method: m, host: host, client: client}
	if m.clientStreams {
		return c.forward(name, nil)
	}
	var first frame
	if err := c.receive(&first); err != nil {
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

// receive reads the next message of the client, and counts it until it was sent.
func (c *call) receive(f *frame) error {
	if err := c.client.RecvMsg(f); err != nil {
		return err
	}
	c.counts.received(c.method)
	if err := c.change(f, c.names.request); err != nil {
		return err
	}
	if !c.method.clientStreams && f.data.Len() < freeBytes {
		return nil // there is no other
	}
	return f.hold(c.held, c.host)
}

// change does to a message what a namespace does.
func (c *call) change(f *frame, change func(*method, *frame) error) error {
	if size := f.data.Len(); size >= freeBytes && c.names.reads(c.method) {
		leave, entered := c.held.Enter(c.host, int64(readCopies*size))
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
	return nil
}

// answer passes a message on to the client, and counts it until that is done: then what waits is counted where it waits. The
// stream ends if the client is slow and there is no room for what comes behind.
func (c *call) answer(f *frame) error {
	defer f.drop()
	if err := c.change(f, c.names.response); err != nil {
		return err
	}
	if size := f.data.Len(); size >= freeBytes {
		f.data = mem.BufferSlice{mem.SliceBuffer(f.bytes())} // pooled buffers may be several times as large as what is in them
		leave, entered := c.held.Enter(c.host, int64(size))
		if !entered {
			return errTooMuchHeld
		}
		defer leave()
	}
	c.counts.sent(c.method)
	if c.method.kind == unaryKind {
		return c.client.SendMsg(f)
	}
	slow := c.slow()
	defer slow.end()
	return c.client.SendMsg(f)
}

// slow counts the window that fills behind a message, from when its client is slow.
func (c *call) slow() *slowness {
	s := new(slowness)
	s.timer = time.AfterFunc(readPatience, func() {
		leave, entered := c.held.Enter(c.host, windowBytes)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.over && entered:
			leave()
		case s.over:
		case entered:
			s.leave = leave
		default:
			if stream, ours := grpc.ServerTransportStreamFromContext(c.client.Context()).(interface{ Abandon() }); ours {
				stream.Abandon()
			}
		}
	})
	return s
}

// slowness is a message that waits for its client.
type slowness struct {
	timer *time.Timer
	mu    sync.Mutex
	over  bool
	leave func() // nil: nothing is counted
}

func (s *slowness) end() {
	if s.timer.Stop() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; s.leave != nil {
		s.leave()
	}
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
		if err := c.answer(&f); err != nil {
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
