package grpcproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/memory"
)

// startMember serves all calls by one function, and returns its address.
func startMember(t *testing.T, handle func(method string, s grpc.ServerStream) error) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(s)
		return handle(method, s)
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return server, l.Addr().String()
}

// startProxy serves until the test ends. prepare, if set, changes the proxy before it serves.
func startProxy(t *testing.T, o Options, prepare func(*Proxy)) (*Proxy, string) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	o.Members.MaxRecvBytes, o.Clients.MaxSendBytes, o.Clients.MaxConcurrentStreams = 64<<20, 1<<20, 1000
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(p)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.ServeClients(p.Bounded(l, false)) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := errors.Join(<-served, p.Close()); err != nil {
			t.Error(err)
		}
	})
	return p, l.Addr().String()
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func text(s string) *frame { return &frame{data: mem.BufferSlice{mem.SliceBuffer(s)}} }

// ask makes a call with one request and returns the first response.
func ask(ctx context.Context, conn *grpc.ClientConn, method, request string) (string, grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &anyStream, method)
	if err != nil {
		return "", nil, err
	}
	if err := stream.SendMsg(text(request)); err != nil && !errors.Is(err, io.EOF) {
		return "", stream, err
	}
	_ = stream.CloseSend()
	var answer frame
	if err := stream.RecvMsg(&answer); err != nil {
		return "", stream, err
	}
	return string(answer.bytes()), stream, nil
}

const putMethod = pb.KV_Put_FullMethodName

// Ensure that metadata, deadline, messages, header, trailer and the details of a status reach the other side.
func TestProxy_forward(t *testing.T) {
	refusal, err := status.New(codes.FailedPrecondition, "etcdserver: no").WithDetails(&pb.ResponseHeader{Revision: 7})
	if err != nil {
		t.Fatal(err)
	}
	_, member := startMember(t, func(method string, s grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		_, limited := s.Context().Deadline()
		if method != "/other.Service/Method" || strings.Join(md["token"], "") != "secret" || string(md["x-bin"][0]) != "\x00\xff" || !limited {
			return status.Errorf(codes.Internal, "got %s with %v, deadline %v", method, md, limited)
		}
		if err := s.SendHeader(metadata.Pairs("h", "1")); err != nil {
			return err
		}
		var f frame
		for s.RecvMsg(&f) == nil {
			if err := s.SendMsg(&f); err != nil {
				return err
			}
		}
		s.SetTrailer(metadata.Pairs("t", "2"))
		return refusal.Err()
	})
	_, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}}, nil)
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "token", "secret", "x-bin", "\x00\xff"), time.Minute)
	defer cancel()
	large := strings.Repeat("x", 100_000)
	answer, stream, err := ask(ctx, dial(t, address), "/other.Service/Method", large)
	if err != nil || answer != large {
		t.Fatalf("got %d bytes, %v", len(answer), err)
	}
	if header, err := stream.Header(); err != nil || strings.Join(header["h"], "") != "1" {
		t.Errorf("got header %v, %v", header, err)
	}
	ended := stream.RecvMsg(new(frame))
	got := status.Convert(ended)
	if got.Code() != codes.FailedPrecondition || got.Message() != "etcdserver: no" || len(got.Details()) != 1 ||
		got.Details()[0].(*pb.ResponseHeader).Revision != 7 || strings.Join(stream.Trailer()["t"], "") != "2" {
		t.Errorf("got %v with %v and trailer %v", ended, got.Details(), stream.Trailer())
	}
}

// Ensure that a call that its client gives up ends at the member, too.
func TestProxy_forward_givenUp(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error {
		close(begun)
		<-s.Context().Done()
		close(ended)
		return nil
	})
	_, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := dial(t, address).NewStream(ctx, &anyStream, pb.Watch_Watch_FullMethodName); err != nil {
		t.Fatal(err)
	}
	<-begun
	cancel()
	<-ended
}

// Ensure that calls go to all members in turn, and to the others when one has gone.
func TestProxy_forward_members(t *testing.T) {
	named := func(name string) func(string, grpc.ServerStream) error {
		return func(_ string, s grpc.ServerStream) error { return s.SendMsg(text(name)) }
	}
	first, one := startMember(t, named("one"))
	_, two := startMember(t, named("two"))
	_, address := startProxy(t, Options{Members: Members{Endpoints: []string{one, two}}}, nil)
	conn := dial(t, address)
	seen := map[string]bool{}
	for i := 0; len(seen) < 2; i++ {
		answer, _, err := ask(t.Context(), conn, putMethod, "")
		if err != nil || i > 100_000 {
			t.Fatalf("got %q, %v, and before only %v", answer, err, seen)
		}
		seen[answer] = true
	}
	first.Stop()
	for good := 0; good < 20; {
		answer, _, err := ask(t.Context(), conn, putMethod, "")
		switch {
		case err == nil && answer == "two":
			good++
		case status.Code(err) == codes.Unavailable: // it was under way, or about to be
		default:
			t.Fatalf("got %q, %v", answer, err)
		}
	}
}

// held are the shares of a proxy whose clients may hold so many bytes; a host that is alone may hold half of them.
func held(bytes int64) memory.ProxyShares {
	shares := memory.DivideProxy(memory.MinLimit)
	shares.Clients.Total = bytes
	return shares
}

// Ensure that a client that does not read is not read for without end, that the call ends with the reason, and that what was
// held is given back.
func TestProxy_forward_unread(t *testing.T) {
	stopped := make(chan int, 1)
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error {
		for n := 0; ; n++ {
			if err := s.SendMsg(text(strings.Repeat("x", 64<<10))); err != nil {
				stopped <- n
				return err
			}
		}
	})
	p, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}, Memory: held(256 << 10)}, nil)
	conn := dial(t, address)
	stream, err := conn.NewStream(t.Context(), &anyStream, pb.Watch_Watch_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if sent := <-stopped; sent > 1000 {
		t.Errorf("the member could send %d messages", sent)
	}
	var read frame
	for err = nil; err == nil; err = stream.RecvMsg(&read) {
		read.drop()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	conn.Close()
	p.server.Stop()
	awaitHeld(t, p, "nothing, when all have gone", func(bytes int64) bool { return bytes == 0 })
	if p.calls.held.Stats().Refused == 0 {
		t.Error("nothing was refused")
	}
}

// Ensure that calls of a host are refused once they take half of what clients may hold, that one which renews leases has room
// then, and that messages beyond --max-send-bytes are refused.
func TestProxy_forward_bounds(t *testing.T) {
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error {
		if err := s.SendHeader(metadata.Pairs("h", "1")); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	})
	p, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}, Memory: held(1 << 20)}, nil)
	conn := dial(t, address)
	if _, _, err := ask(t.Context(), conn, putMethod, strings.Repeat("x", 2<<20)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of two MiB: got %v", err)
	}
	open := func(method string) error {
		stream, err := conn.NewStream(t.Context(), &anyStream, method)
		if err == nil {
			if header, _ := stream.Header(); len(header["h"]) == 0 { // it is not the member that answers
				err = stream.RecvMsg(new(frame))
			}
		}
		return err
	}
	calls := 0
	var err error
	for err == nil && calls < 100 {
		if err = open(pb.Watch_Watch_FullMethodName); err == nil {
			calls++
		}
	}
	if status.Code(err) != codes.ResourceExhausted || calls < 10 || calls >= 512/32 {
		t.Errorf("half a MiB is room for %d calls of 32 KiB; the next one got %v", calls, err)
	}
	if err := open(pb.Lease_LeaseKeepAlive_FullMethodName); err != nil {
		t.Errorf("a stream that renews leases: got %v", err)
	}
	if open, refused := p.calls.callCounts(); open != calls+1 || refused == 0 {
		t.Errorf("%d calls are open, want %d; %d were refused", open, calls+1, refused)
	}
	conn.Close()
	p.server.Stop()
	awaitHeld(t, p, "nothing, when all have gone", func(bytes int64) bool { return bytes == 0 })
}

// Ensure that connections are counted by what they take, and those for metrics on their own.
func TestProxy_Bounded(t *testing.T) {
	p, err := New(Options{Memory: memory.DivideProxy(memory.MinLimit), Members: Members{Endpoints: []string{"127.0.0.1:1"}},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, row := range []struct {
		name    string
		bounded func(net.Listener, bool) net.Listener
		secure  bool
		ledger  *admission.Ledger
		want    int64
	}{
		{"plain", p.Bounded, false, p.calls.held, admission.ConnBytes},
		{"encrypted", p.Bounded, true, p.calls.held, admission.TLSConnBytes},
		{"for metrics", p.BoundedMetrics, false, p.metrics, admission.HTTPConnBytes},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		before := row.ledger.Stats().Bytes
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn, err := row.bounded(l, row.secure).Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got := row.ledger.Stats().Bytes - before; got != row.want {
			t.Errorf("%s: it counts %d bytes, want %d", row.name, got, row.want)
		}
		if err := errors.Join(conn.Close(), client.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
	if got, want := p.calls.held.Limit(), memory.DivideProxy(memory.MinLimit).Clients.Total; got != want {
		t.Errorf("clients may hold %d bytes, want %d", got, want)
	}
}

// Ensure that what has arrived of a message counts, by its bytes, before it is there in full.
func TestProxy_halfSent(t *testing.T) {
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error {
		<-s.Context().Done()
		return nil
	})
	p, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}}, nil)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", pb.Watch_Watch_FullMethodName},
		{":authority", "a"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		_ = fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // to memory
	}
	const size = 40_000
	frames := http2.NewFramer(conn, nil)
	_, err = conn.Write([]byte(http2.ClientPreface))
	err = errors.Join(err, frames.WriteSettings(),
		frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}),
		frames.WriteData(1, false, []byte{0, 0, 1, 0, 0}))
	for range size / 10_000 {
		err = errors.Join(err, frames.WriteData(1, false, make([]byte, 10_000)))
	}
	if err != nil {
		t.Fatal(err)
	}
	awaitHeld(t, p, "the call and what came of its message", func(bytes int64) bool { return bytes >= callBytes+size })
}

// awaitHeld waits until clients hold what is wanted.
func awaitHeld(t *testing.T, p *Proxy, want string, fits func(bytes int64) bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !fits(p.calls.held.Stats().Bytes); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held, want %s", p.calls.held.Stats().Bytes, want)
		}
	}
}

// Ensure that MemberList names the proxies, if they have an address, and the members otherwise.
func TestProxy_memberList(t *testing.T) {
	_, member := startMember(t, func(_ string, s grpc.ServerStream) error { return s.SendMsg(text("\x12\x00")) })
	list := func(naming Naming, proxies ...endpoints.Endpoint) (urls []string) {
		p, address := startProxy(t, Options{Members: Members{Endpoints: []string{member}}, Naming: naming}, nil)
		p.calls.naming.forget()
		for _, e := range proxies {
			p.calls.naming.update([]*endpoints.Update{{Op: endpoints.Add, Key: e.Addr, Endpoint: e}})
		}
		p.calls.naming.update([]*endpoints.Update{{Op: endpoints.Delete, Key: "gone:1"}})
		answer, _, err := ask(t.Context(), dial(t, address), memberList, "")
		var members pb.MemberListResponse
		if err != nil || proto.Unmarshal([]byte(answer), &members) != nil {
			t.Fatal(answer, err)
		}
		for _, m := range members.Members {
			urls = append(urls, m.Name+strings.Join(m.ClientURLs, ","))
		}
		return urls
	}
	if got := list(Naming{}); len(got) != 1 || got[0] != "" {
		t.Errorf("without an address: got %q, want what the member says", got)
	}
	if got := list(Naming{URL: "proxy:1"}); len(got) != 1 || !strings.HasSuffix(got[0], "proxy:1") {
		t.Errorf("got %q, want the proxy itself", got)
	}
	got := list(Naming{URL: "proxy:1"}, endpoints.Endpoint{Addr: "b:1", Metadata: `{"name":"two"}`}, endpoints.Endpoint{Addr: "gone:1"},
		endpoints.Endpoint{Addr: strings.Repeat("x", 5000)}, endpoints.Endpoint{Addr: "a:1", Metadata: "?"})
	if strings.Join(got, " ") != "a:1 twob:1" {
		t.Errorf("got %q, want those that have registered", got)
	}
}

// Ensure that health follows what a member answers, and that being refused for lack of a permission is an answer.
func TestWeb_handler(t *testing.T) {
	var mu sync.Mutex
	var answer error
	_, member := startMember(t, func(method string, s grpc.ServerStream) error {
		mu.Lock()
		defer mu.Unlock()
		if answer != nil {
			return answer
		}
		return s.SendMsg(text("\x18\x01")) // of a watch: created
	})
	p, _ := startProxy(t, Options{Members: Members{Endpoints: []string{member}}}, nil)
	site := httptest.NewServer(p.web.handler(true))
	defer site.Close()
	get := func(path string) (int, string) {
		r, err := http.Get(site.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return r.StatusCode, strings.TrimSpace(string(body))
	}
	for _, path := range []string{"/health", "/proxy/health"} {
		for _, row := range []struct {
			answer error
			code   int
			body   string
		}{
			{nil, 200, `{"health":"true","reason":""}`},
			{status.Error(codes.PermissionDenied, "etcdserver: permission denied"), 200, `{"health":"true","reason":""}`},
			{status.Error(codes.InvalidArgument, "etcdserver: user name is empty"), 200, `{"health":"true","reason":""}`},
			{status.Error(codes.DataLoss, "etcdserver: corrupt cluster"), 503,
				`{"health":"false","reason":"GET ERROR:etcdserver: corrupt cluster"}`},
		} {
			mu.Lock()
			answer = row.answer
			mu.Unlock()
			if code, body := get(path); code != row.code || body != row.body {
				t.Errorf("%s, %v: got %d, %s", path, row.answer, code, body)
			}
		}
	}
	for path, want := range map[string]string{
		"/proxy/metrics":       `grpc_server_handled_total{grpc_code="OK",grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"}`,
		"/debug/pprof/cmdline": "test",
		"/metrics":             "no member answers", // a fake has none
		"/v3/kv/range":         "404",
	} {
		if _, body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: got %.300s, want %s", path, body, want)
		}
	}
}
