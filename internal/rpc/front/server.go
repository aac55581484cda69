package front

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// Codec reads and writes messages. One that has the method Counted(any) bool says by it whether the memory of an answer is
// counted elsewhere until it was sent.
type Codec interface {
	Marshal(v any) (mem.BufferSlice, error)
	Unmarshal(data mem.BufferSlice, v any) error
}

// Prompt serves a call without waiting; false if it might have to wait, and has done nothing. The message is valid during the
// call.
type Prompt func(c *Call, message []byte) bool

// Options are what a Server is made of.
type Options struct {
	HTTP2       h2.Options // but for the Handler
	Codec       Codec
	Credentials credentials.TransportCredentials
	Unary       grpc.UnaryServerInterceptor
	Stream      grpc.StreamServerInterceptor
	// Others describes methods, by their full names, that no service has which is registered; nil: there are none.
	Others     func(method string) *grpc.StreamDesc
	Prompt     map[string]Prompt              // by the full name of the method
	IsPrompt   func(ctx context.Context) bool // whether calls with the metadata of ctx may be prompt
	MaxMessage int                            // bytes of a request's message
	// Unsent bounds how long the only message of a request may take to come: end is called when it took too long.
	Unsent  func(end func()) (arrived func())
	Writers int // goroutines that write the answers of prompt calls
	Readers int // goroutines that finish prompt calls which may wait for a disk; more do while they wait
	// Turns are for large messages to be compressed, or the opposite; nil: turns of its own.
	Turns *admission.Turns
	// Stats is told of calls, as by a grpc.Server, but not of their payloads; nil: nobody is. With it no call is prompt.
	Stats stats.Handler
}

// Server is a grpc.ServiceRegistrar.
type Server struct {
	options   Options
	http2     *h2.Server
	methods   map[string]*method
	services  map[string]bool
	writers   []*answerWriter
	readers   readers
	connected atomic.Uint64
	stopping  sync.Once
	stop      chan struct{}
	running   sync.WaitGroup
}

// method is one of a service.
type method struct {
	name   string
	impl   any
	unary  *grpc.MethodDesc
	stream *grpc.StreamDesc
	prompt Prompt
}

// New makes a Server. Services are registered before it serves.
func New(options Options) *Server {
	if options.Turns == nil {
		options.Turns = admission.NewTurns()
	}
	s := &Server{options: options, methods: map[string]*method{}, services: map[string]bool{}, stop: make(chan struct{})}
	options.HTTP2.Handler, options.HTTP2.Socket = s, socketOf
	options.HTTP2.Exhausted, options.HTTP2.TooLarge = refusal(200, errExhausted), refusal(200, errTooLarge)
	options.HTTP2.Unread = appendStatus(nil, errUnread)
	s.http2 = h2.New(options.HTTP2)
	for range max(options.Writers, 1) {
		w := &answerWriter{signal: make(chan struct{}, 1)}
		s.writers = append(s.writers, w)
		s.running.Go(func() { w.run(s.stop) })
	}
	s.readers.start(max(options.Readers, 1), &s.running)
	return s
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s.services[desc.ServiceName] = true
	add := func(name string, m *method) {
		m.name, m.impl = "/"+desc.ServiceName+"/"+name, impl
		m.prompt = s.options.Prompt[m.name]
		s.methods[m.name] = m
	}
	for i := range desc.Methods {
		add(desc.Methods[i].MethodName, &method{unary: &desc.Methods[i]})
	}
	for i := range desc.Streams {
		add(desc.Streams[i].StreamName, &method{stream: &desc.Streams[i]})
	}
}

// Serve serves the connections of a listener until the server stops.
func (s *Server) Serve(l net.Listener) error { return s.http2.Serve(l) }

// GracefulStop lets calls end that are under way.
func (s *Server) GracefulStop() {
	s.http2.Drain()
	s.end()
}

// Stop ends all calls.
func (s *Server) Stop() {
	s.http2.Stop()
	s.end()
}

func (s *Server) end() {
	s.stopping.Do(func() {
		close(s.stop)
		s.readers.stop()
	})
	s.running.Wait()
}

// Calmed counts the connections that were ended because their clients sent too much that brought nothing forward.
func (s *Server) Calmed() uint64 { return s.http2.Calmed() }

// connection is what the server knows of one.
type connection struct {
	ctx    context.Context // with the peer
	writer *answerWriter
	opened []unsent // since the last pause
	last   lastRequest
	begun  int // goroutines of calls, since others were let run
}

// maxBegun is how many goroutines a connection may begin for its calls before others run. Thousands of calls may come at once,
// and what waits for a processor waits behind all of their goroutines that were not let run.
const maxBegun = 32

// begin has f run in a goroutine of its own. The goroutine that reads calls it.
func (c *connection) begin(f func()) {
	go f()
	if c.begun++; c.begun == maxBegun {
		c.begun = 0
		runtime.Gosched()
	}
}

// unsent is a request with one message.
type unsent interface {
	// await begins to wait if the message has not come.
	await(unsent func(end func()) (arrived func()))
}

// Pause implements h2.Handler.
func (s *Server) Pause(conn any) {
	c := conn.(*connection)
	for _, u := range c.opened {
		u.await(s.options.Unsent)
	}
	clear(c.opened)
	c.opened = c.opened[:0]
}

// Connect implements h2.Handler.
func (s *Server) Connect(c net.Conn) (known net.Conn, of any, err error) {
	known, info, err := s.options.Credentials.ServerHandshake(c)
	if err != nil {
		return nil, nil, err
	}
	p := &peer.Peer{Addr: c.RemoteAddr(), LocalAddr: c.LocalAddr(), AuthInfo: info}
	writer := s.writers[s.connected.Add(1)%uint64(len(s.writers))]
	return known, &connection{ctx: peer.NewContext(context.Background(), p), writer: writer}, nil
}

// Open implements h2.Handler.
func (s *Server) Open(stream *h2.Stream, fields *h2.Fields, ended bool) h2.Receiver {
	conn := stream.Conn().(*connection)
	r := s.requestOf(conn, fields)
	if r.refused != nil {
		stream.Refuse(refusal(r.httpStatus, r.refused))
		stream.Left()
		return nil
	}
	if r.timeout == 0 {
		stream.Refuse(refusal(200, status.New(codes.DeadlineExceeded, context.DeadlineExceeded.Error())))
		stream.Left()
		return nil
	}
	if r.method.stream != nil {
		if !stream.Hold(serveBytes) {
			stream.Refuse(refusal(200, errExhausted))
			stream.Left()
			return nil
		}
		x := s.openStream(stream, r, ended)
		if !r.method.stream.ClientStreams {
			conn.opened = append(conn.opened, x)
		}
		return x
	}
	if ended {
		stream.Refuse(refusal(200, status.New(codes.Internal, "grpc: a call without a message")))
		stream.Left()
		return nil
	}
	c := &Call{server: s, stream: stream, writer: conn.writer, request: r}
	c.body = assembler{most: s.options.MaxMessage, compressor: r.compression, turns: s.options.Turns, holder: c}
	conn.opened = append(conn.opened, c)
	return c
}

// told tells Options.Stats that a call begins. The context is the one by which it knows the call; ended tells it the end.
func (s *Server) told(ctx context.Context, r *request) (_ context.Context, ended func(err error)) {
	to := s.options.Stats
	if to == nil {
		return ctx, func(error) {}
	}
	m, begun := r.method, time.Now()
	ctx = to.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: m.name})
	header := &stats.InHeader{FullMethod: m.name, Compression: r.compression, Header: r.metadata.Copy()}
	if p, ok := peer.FromContext(ctx); ok {
		header.RemoteAddr, header.LocalAddr = p.Addr, p.LocalAddr
	}
	to.HandleRPC(ctx, header)
	begin := &stats.Begin{BeginTime: begun}
	if m.stream != nil {
		begin.IsClientStream, begin.IsServerStream = m.stream.ClientStreams, m.stream.ServerStreams
	}
	to.HandleRPC(ctx, begin)
	return ctx, func(err error) {
		end := &stats.End{BeginTime: begun, EndTime: time.Now()}
		if err != nil {
			end.Error = statusOf(err).Err()
		}
		to.HandleRPC(ctx, end)
	}
}

// refuse answers with fields alone.
func refuse(stream *h2.Stream, httpStatus int, why *status.Status) {
	stream.Reply(nil, nil, refusal(httpStatus, why))
}

// refusal is an answer of fields alone.
func refusal(httpStatus int, why *status.Status) []byte {
	block := h2.AppendStatus(nil, httpStatus)
	block = h2.AppendField(block, "content-type", "application/grpc")
	return appendStatus(block, why)
}

// How calls end that would make this process keep too much.
var (
	errUnread = status.New(codes.ResourceExhausted,
		"quorate: the answer was not read in time, and its memory is needed: read it sooner, or ask for less at once")
	errTooLarge = status.New(codes.ResourceExhausted, "quorate: the metadata of the call is too large: send less of it")
)

// socketOf returns the socket of a connection that is not encrypted.
func socketOf(c net.Conn) h2.Socket {
	if encrypted, err := tlsconn.Of(c); encrypted != nil || err != nil {
		return nil
	}
	for {
		switch below := c.(type) {
		case h2.Socket:
			return below
		case interface{ NetConn() net.Conn }:
			c = below.NetConn()
		default:
			return nil
		}
	}
}
