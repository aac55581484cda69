package front

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/burst"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// texts are messages.
type texts struct{}

// Marshal implements Codec.
func (texts) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(string))}, nil
}

// Unmarshal implements Codec.
func (texts) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*string) = string(data.Materialize())
	return nil
}

// service has a call that echoes, or fails if it is asked to, and a stream that sends for ever.
func service(ended chan<- error) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{ServiceName: "t.S",
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: func(
			_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var text string
			err := decode(&text)
			if text == "fail" {
				err = status.Error(codes.Aborted, "as asked")
			}
			return text, err
		}}, {MethodName: "Exit", Handler: func( // as far as it matters, this is what a panic does
			any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			runtime.Goexit()
			return nil, nil
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Burst", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			w := burst.New(permitted{s}, new(atomic.Uint64))
			for i := range 100 {
				if err := w.Send(number(i)); err != nil {
					return err
				}
			}
			return w.Flush()
		}}, {StreamName: "ExitStream", Handler: func(any, grpc.ServerStream) error {
			runtime.Goexit()
			return nil
		}}, {StreamName: "Both", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			for {
				var text string
				if err := s.RecvMsg(&text); err != nil {
					return err
				}
			}
		}}, {StreamName: "Endless", ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
			text := strings.Repeat("x", 32<<10)
			for {
				if err := s.SendMsg(text); err != nil {
					ended <- err
					return err
				}
			}
		}}},
	}
}

// number is a message of four bytes.
type number uint32

func (n number) SizeWire() int                { return 4 }
func (n number) AppendWire(dst []byte) []byte { return binary.BigEndian.AppendUint32(dst, uint32(n)) }

// permitted may be sent anything.
type permitted struct{ grpc.ServerStream }

func (permitted) Pass(int) error { return nil }

// client speaks to a Server frame by frame.
type client struct {
	*http2.Framer
	t     *testing.T
	ended chan error // how the endless stream did
}

func serve(t *testing.T, change func(*Options)) *client {
	t.Helper()
	options := Options{
		HTTP2: h2.Options{MaxStreams: 10, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20,
			Handshake: time.Minute},
		Codec: texts{}, Credentials: tlsconn.Credentials(), MaxMessage: 1 << 20,
		IsPrompt: func(context.Context) bool { return true },
		Turns:    admission.NewTurns(),
	}
	if change != nil {
		change(&options)
	}
	s, ended := New(options), make(chan error, 1)
	s.RegisterService(service(ended), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		serving.Wait()
	})
	c := &client{Framer: http2.NewFramer(conn, conn), t: t, ended: ended}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err = io.WriteString(conn, http2.ClientPreface)
	c.must(errors.Join(err, conn.SetDeadline(time.Now().Add(20*time.Second)), c.WriteSettings()))
	return c
}

func (c *client) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// call begins a call, with more fields.
func (c *client) call(id uint32, path string, more ...string) {
	c.t.Helper()
	var block []byte
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type",
		"application/grpc", "te", "trailers"}, more...)
	for i := 0; i < len(fields); i += 2 {
		block = h2.AppendField(block, fields[i], fields[i+1])
	}
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
}

func (c *client) send(id uint32, ends bool, text string) {
	c.t.Helper()
	c.must(c.WriteData(id, ends, append(h2.AppendPrefix(nil, len(text)), text...)))
}

// status reads how a stream ended: its status, or RST_STREAM and its code.
func (c *client) status(id uint32) string {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if f.Header().StreamID != id {
			continue
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			return f.ErrCode.String()
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				if field.Name == "grpc-status" {
					return field.Value
				}
			}
		}
	}
}

// read waits until the server has taken what was sent.
func (c *client) read() {
	c.t.Helper()
	c.must(c.WritePing(false, [8]byte{1}))
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if p, ok := f.(*http2.PingFrame); ok && p.IsAck() {
			return
		}
	}
}

// Ensure that nothing is kept of what a client sends behind the only message of a call, while the call is served.
func TestCall_Receive_nothingMore(t *testing.T) {
	calls := make(chan *Call, 1)
	c := serve(t, func(o *Options) {
		o.Prompt = map[string]Prompt{"/t.S/Echo": func(c *Call, _ []byte) bool {
			calls <- c
			return true
		}}
	})
	c.call(1, "/t.S/Echo")
	c.send(1, false, "only")
	call := <-calls
	c.must(c.WriteData(1, false, h2.AppendPrefix(nil, 1<<20)))
	for range 60 {
		c.must(c.WriteData(1, false, make([]byte, 16<<10)))
	}
	c.read()
	call.server.http2.Stop() // so that no goroutine reads any more
	if n := cap(call.body.message); n > 0 {
		t.Errorf("%d bytes are kept", n)
	}
	call.Left()
}

// Ensure that a call whose time is over when it begins is not served.
func TestServer_noTimeLeft(t *testing.T) {
	c := serve(t, func(o *Options) {
		o.Prompt = map[string]Prompt{"/t.S/Echo": func(c *Call, _ []byte) bool {
			t.Error("it is served")
			return false
		}}
	})
	c.call(1, "/t.S/Echo", timeoutField, "0m")
	c.send(1, true, "late")
	if got := c.status(1); got != "4" {
		t.Errorf("got %s, want DeadlineExceeded", got)
	}
}

// Ensure that a stream ends at its deadline although its client does not read, and gives back what waited.
func TestServer_deadlineOfUnreadStream(t *testing.T) {
	c := serve(t, nil)
	c.call(1, "/t.S/Endless", timeoutField, "200m")
	c.send(1, true, "")
	if got := c.status(1); got != "CANCEL" {
		t.Errorf("got %s", got)
	}
	if err := <-c.ended; status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the service was told %v", err)
	}
}

// Ensure that messages to a stream that are sent together are one frame.
func TestServer_burst(t *testing.T) {
	c := serve(t, nil)
	c.call(1, "/t.S/Burst", "grpc-encoding", "identity")
	c.send(1, true, "")
	var want []byte
	for i := range 100 {
		want = number(i).AppendWire(h2.AppendPrefix(want, 4))
	}
	var kinds []http2.FrameType
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if f.Header().StreamID != 1 {
			continue
		}
		kinds = append(kinds, f.Header().Type)
		if d, ok := f.(*http2.DataFrame); ok && !bytes.Equal(d.Data(), want) {
			t.Errorf("got %d bytes", len(d.Data()))
		}
		if f.Header().Flags.Has(http2.FlagHeadersEndStream) {
			break
		}
	}
	if !slices.Equal(kinds, []http2.FrameType{http2.FrameHeaders, http2.FrameData, http2.FrameHeaders}) {
		t.Errorf("the frames are %v", kinds)
	}
}

func TestUnknownMethod(t *testing.T) {
	s := &Server{services: map[string]bool{"t.S": true}}
	for path, want := range map[string]string{
		"/t.S/X": "unknown method X for service t.S", "/t.S/Echo/": "unknown service t.S/Echo", "/a/b/c": "unknown service a/b",
		"t.S/Echo": `malformed method name: "t.S/Echo"`, "/t.S": `malformed method name: "/t.S"`, "": `malformed method name: ""`,
	} {
		if got := unknownMethod(s, path); got.Code() != codes.Unimplemented || got.Message() != want {
			t.Errorf("%q: got %v", path, got)
		}
	}
}

// notes writes down what Options.Stats is told.
type notes struct {
	mu   sync.Mutex
	said []string
	done chan struct{} // a call has ended
}

type noteKey struct{}

// TagRPC implements stats.Handler.
func (n *notes) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, noteKey{}, info.FullMethodName)
}

// HandleRPC implements stats.Handler.
func (n *notes) HandleRPC(ctx context.Context, s stats.RPCStats) {
	text := fmt.Sprintf("%s %T", ctx.Value(noteKey{}), s)
	switch s := s.(type) {
	case *stats.InHeader:
		p, _ := peer.FromContext(ctx)
		text += fmt.Sprintf(" %v %s %v %v", s.Header["trace"], s.FullMethod, s.RemoteAddr == p.Addr, s.LocalAddr != nil)
	case *stats.Begin:
		text += fmt.Sprintf(" %v %v", s.IsClientStream, s.IsServerStream)
	case *stats.End:
		text += fmt.Sprint(" ", status.Code(s.Error), !s.EndTime.Before(s.BeginTime))
		defer func() { n.done <- struct{}{} }()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, text)
}

// TagConn implements stats.Handler.
func (n *notes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (n *notes) HandleConn(context.Context, stats.ConnStats) {}

// Ensure that Options.Stats is told of calls and streams, of the prompt methods' too, and of nothing that was refused before.
func TestServer_stats(t *testing.T) {
	n := &notes{done: make(chan struct{}, 3)}
	c := serve(t, func(o *Options) {
		o.Stats = n
		o.Prompt = map[string]Prompt{"/t.S/Echo": func(*Call, []byte) bool { panic("prompt, and nobody is told") }}
	})
	c.call(1, "/t.S/Echo", "trace", "a")
	c.send(1, true, "hello")
	c.status(1)
	<-n.done
	c.call(3, "/t.S/Echo", "trace", "b")
	c.send(3, true, "fail")
	if got := c.status(3); got != "10" {
		t.Errorf("got %s", got)
	}
	<-n.done
	c.call(5, "/t.S/Unknown")
	c.status(5)
	c.call(7, "/t.S/Endless")
	c.send(7, true, "")
	c.must(c.WriteRSTStream(7, http2.ErrCodeCancel))
	<-n.done
	want := []string{
		"/t.S/Echo *stats.InHeader [a] /t.S/Echo true true", "/t.S/Echo *stats.Begin false false", "/t.S/Echo *stats.End OK true",
		"/t.S/Echo *stats.InHeader [b] /t.S/Echo true true", "/t.S/Echo *stats.Begin false false", "/t.S/Echo *stats.End Aborted true",
		"/t.S/Endless *stats.InHeader [] /t.S/Endless true true", "/t.S/Endless *stats.Begin false true",
		"/t.S/Endless *stats.End Canceled true",
	}
	if !slices.Equal(n.said, want) {
		t.Errorf("got\n%s", strings.Join(n.said, "\n"))
	}
}

// Ensure that the connection lives on when a client breaks the rules on one stream, as with grpc-go.
func TestServer_brokenStreams(t *testing.T) {
	c := serve(t, nil)
	c.call(1, "/t.S/Echo", "x-bin", "!")
	if got := c.status(1); got != "13" {
		t.Errorf("metadata: got %s", got)
	}
	c.call(3, "/t.S/Echo")
	c.must(c.WriteData(3, true, bytes.Repeat([]byte{0xff}, 5)))
	if got := c.status(3); got != "8" {
		t.Errorf("a message of 4 GiB: got %s", got)
	}
	c.call(5, "/t.S/Echo", timeoutField, "1x")
	if got := c.status(5); got != "13" {
		t.Errorf("timeout: got %s", got)
	}
	c.call(7, "/t.S/Echo")
	c.send(7, true, "hello")
	if got := c.status(7); got != "0" {
		t.Errorf("got %s", got)
	}
}

// Ensure that of two deadlines of a call the last one counts, as with grpc-go, also if all but the first is as in the call before.
func TestServer_twoTimeouts(t *testing.T) {
	c := serve(t, nil)
	for id, call := range []struct{ first, second, want string }{
		{"1S", "10S", "0"}, {"0m", "10S", "0"}, {"1S", "0m", "4"}, {"1S", "1x", "13"}, {"1S", "", "13"}, {"2S", "10S", "0"},
	} {
		stream := uint32(2*id + 1)
		c.call(stream, "/t.S/Echo", timeoutField, call.first, timeoutField, call.second)
		c.send(stream, true, "hello")
		if got := c.status(stream); got != call.want {
			t.Errorf("%s and %s: got %s, want %s", call.first, call.second, got, call.want)
		}
	}
}

// Ensure that a deadline is read that is not that of the call before.
func TestServer_otherTimeout(t *testing.T) {
	c := serve(t, nil)
	for id, call := range []struct{ timeout, want string }{{"1S", "0"}, {"0m", "4"}, {"1S", "0"}, {"", "13"}, {"1x", "13"}} {
		stream := uint32(2*id + 1)
		c.call(stream, "/t.S/Echo", timeoutField, call.timeout)
		c.send(stream, true, "hello")
		if got := c.status(stream); got != call.want {
			t.Errorf("%q: got %s, want %s", call.timeout, got, call.want)
		}
	}
}

// Ensure that an observer of calls is told that they end, also of those whose method does not return.
func TestServer_stats_noReturn(t *testing.T) {
	n := &notes{done: make(chan struct{}, 2)}
	c := serve(t, func(o *Options) { o.Stats = n })
	for i, path := range []string{"/t.S/Exit", "/t.S/ExitStream"} {
		id := uint32(2*i + 1)
		c.call(id, path)
		c.send(id, true, "")
		<-n.done
	}
	ended := slices.DeleteFunc(n.said, func(said string) bool { return !strings.Contains(said, "End") })
	if want := []string{"/t.S/Exit *stats.End Unknown true", "/t.S/ExitStream *stats.End Unknown true"}; !slices.Equal(ended, want) {
		t.Errorf("got %q", ended)
	}
}

// Ensure that a connection does not remember a request with many fields.
func TestServer_requestOf_remembersLittle(t *testing.T) {
	s := New(Options{})
	defer s.Stop()
	list := []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":path", Value: "/a/b"}}
	conn := &connection{ctx: context.Background()}
	if s.requestOf(conn, &h2.Fields{List: list}); conn.last.parsed == nil {
		t.Error("a small one is not remembered")
	}
	for range maxRemembered {
		list = append(list, hpack.HeaderField{Name: "x", Value: "y"})
	}
	if s.requestOf(conn, &h2.Fields{List: list}); conn.last.parsed != nil {
		t.Error("a large one is remembered")
	}
}
