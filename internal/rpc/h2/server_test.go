package h2_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// echo answers each request with its body, or with so many bytes as it asks for by the field "bytes".
type echo struct {
	open     atomic.Int64
	lost     atomic.Int64
	answered atomic.Int64

	mu       sync.Mutex
	stubborn []*body // that are worked for although they were lost
	released bool    // none is, any more
}

func (e *echo) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.released = true
	for _, b := range e.stubborn {
		b.s.Left()
		e.open.Add(-1)
	}
}

// maxStreams is how many streams the server of a test allows.
const maxStreams = 100

type body struct {
	of       *echo
	s        *h2.Stream
	read     []byte
	many     int
	stubborn bool
	ended    atomic.Bool // it may be lost while it is answered
}

func (b *body) end() {
	if b.ended.CompareAndSwap(false, true) {
		b.s.Left()
		b.of.open.Add(-1)
	}
}

// send answers with many messages, as a watch does.
func (b *body) send() {
	b.s.Headers(h2.AppendField(h2.AppendStatus(nil, 200), "content-type", "application/grpc"))
	for range b.many {
		message := h2.AppendPrefix(nil, 100)
		if !b.s.Send([]h2.Part{{Data: append(message, make([]byte, 100)...)}}) {
			break
		}
	}
	b.s.Reply(nil, nil, h2.AppendField(nil, "grpc-status", "0"))
	b.s.Left()
	b.of.open.Add(-1)
}

func (e *echo) Connect(c net.Conn) (net.Conn, any, error) { return c, e, nil }
func (e *echo) Pause(any)                                 {}
func (e *echo) Open(s *h2.Stream, fields *h2.Fields, ended bool) h2.Receiver {
	b := &body{of: e, s: s}
	e.open.Add(1)
	for _, f := range fields.List {
		switch f.Name {
		case "silent":
			return b
		case "stubborn":
			b.stubborn = true
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.stubborn = append(e.stubborn, b); e.released { // what was on its way when its client went
				b.s.Left()
				e.open.Add(-1)
			}
			return b
		case "many":
			b.many, _ = strconv.Atoi(f.Value)
			go b.send()
			return b
		case "large":
			b.read = bytes.Repeat([]byte("x"), 1<<20)
		}
	}
	if ended {
		b.answer()
	}
	return b
}

func (b *body) Receive(p []byte, ended bool) {
	b.read = append(b.read, p...)
	b.s.Took(len(p))
	if ended && b.many == 0 {
		b.answer()
	}
}

func (b *body) answer() {
	b.of.answered.Add(1)
	b.s.Answer(message(b.read))
	b.s.Flush()
	b.end()
}

func (b *body) Lost() {
	b.of.lost.Add(1)
	if b.many > 0 || b.stubborn { // send notices, or none
		return
	}
	b.end()
}

type message []byte

func (m message) SizeWire() int                { return len(m) }
func (m message) AppendWire(dst []byte) []byte { return append(dst, m...) }

// client speaks to a server frame by frame.
type client struct {
	*http2.Framer
	t      testing.TB
	conn   net.Conn
	echo   *echo
	server *h2.Server
	enc    *hpack.Encoder
	buf    bytes.Buffer
}

func serve(t testing.TB, network, address string, socket func(net.Conn) h2.Socket) (*h2.Server, *echo, string) {
	t.Helper()
	e := &echo{}
	s := h2.New(h2.Options{
		Handler: e, MaxStreams: maxStreams, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20, Handshake: time.Minute,
		Socket: socket,
	})
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
		if n := e.open.Load(); n != 0 {
			t.Errorf("%d requests were neither answered nor lost", n)
		}
	})
	return s, e, l.Addr().String()
}

func dial(t testing.TB) *client {
	t.Helper()
	s, e, addr := serve(t, "tcp", "127.0.0.1:0", func(c net.Conn) h2.Socket { return c.(*net.TCPConn) })
	c := dialAt(t, addr)
	c.echo, c.server = e, s
	return c
}

// timeLimit is what a test may take.
const timeLimit = 20 * time.Second

// dialAt connects and sends the preface.
func dialAt(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(timeLimit)); err != nil {
		t.Fatal(err)
	}
	c := &client{Framer: http2.NewFramer(conn, conn), t: t, conn: conn}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.enc = hpack.NewEncoder(&c.buf)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) block(more ...string) []byte {
	c.buf.Reset()
	fields := append([]string{":method", "POST", ":scheme", "http", ":path", "/a/b", "content-type", "application/grpc"}, more...)
	for i := 0; i < len(fields); i += 2 {
		if err := c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			c.t.Fatal(err)
		}
	}
	return bytes.Clone(c.buf.Bytes())
}

func (c *client) request(id uint32, ends bool, more ...string) error {
	return c.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: c.block(more...), EndHeaders: true, EndStream: ends})
}

// goAway reads until the server says why it ends the connection, and at most so many bytes.
func (c *client) goAway() http2.ErrCode {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("no GOAWAY: %v", err)
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			return g.ErrCode
		}
	}
}

// message reads the answer of a stream.
func (c *client) answer(id uint32) (data []byte) {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("stream %d: %v", id, err)
		}
		if f.Header().StreamID != id {
			continue
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			data = append(data, f.Data()...)
		case *http2.MetaHeadersFrame:
			if f.StreamEnded() {
				return data[5:]
			}
		case *http2.RSTStreamFrame:
			c.t.Fatalf("stream %d was reset: %v", id, f.ErrCode)
		}
	}
}

// Ensure that requests are answered, the fields in the client's table of the second answer on.
func TestServer_answer(t *testing.T) {
	c := dial(t)
	for id := uint32(1); id < 20; id += 2 {
		if err := errors.Join(c.request(id, false), c.WriteData(id, true, []byte("hello"))); err != nil {
			t.Fatal(err)
		}
		if got := c.answer(id); string(got) != "hello" {
			t.Fatalf("stream %d: got %q", id, got)
		}
	}
}

// Ensure that an answer larger than the windows of the client comes as it gives room, byte by byte at the worst.
func TestServer_smallWindow(t *testing.T) {
	c := dial(t)
	if err := c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.request(1, false), c.WriteData(1, true, []byte("hello"))); err != nil {
		t.Fatal(err)
	}
	for range len("hello") + 5 {
		if err := c.WriteWindowUpdate(1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.answer(1); string(got) != "hello" {
		t.Fatalf("got %q", got)
	}
}

// Ensure that a stream that the client resets, or loses with its connection, is lost to its Receiver, once.
func TestServer_lost(t *testing.T) {
	c := dial(t)
	if err := errors.Join(c.request(1, false, "silent", "1"), c.request(3, false, "silent", "1"),
		c.WriteRSTStream(1, http2.ErrCodeCancel), c.request(5, false), c.WriteData(5, true, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	c.answer(5)
	if n := c.echo.lost.Load(); n != 1 {
		t.Errorf("%d were lost, want one", n)
	}
}

// Ensure that a client that does not answer pings is given up.
func TestServer_silentClient(t *testing.T) {
	pings := h2.Pings{Interval: time.Millisecond, Timeout: time.Millisecond}
	s := h2.New(h2.Options{Handler: &echo{}, MaxStreams: 1, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20,
		Handshake: time.Minute, Pings: pings, Socket: func(c net.Conn) h2.Socket { return c.(*net.TCPConn) }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Stop()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	f := http2.NewFramer(conn, conn)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	pinged := false
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			break
		}
		ping, ok := frame.(*http2.PingFrame)
		pinged = pinged || ok && !ping.IsAck()
	}
	if !pinged {
		t.Error("it was not pinged before")
	}
}

// FuzzServer sends bytes after the preface.
func FuzzServer(f *testing.F) {
	var frames bytes.Buffer
	fr := http2.NewFramer(&frames, nil)
	_ = fr.WriteSettings()
	_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x83, 0x86, 0x84}, EndHeaders: true})
	_ = fr.WriteData(1, true, []byte("hello"))
	_ = fr.WritePing(false, [8]byte{1})
	_ = fr.WriteWindowUpdate(0, 10)
	f.Add(frames.Bytes())
	// A server that reads a socket itself may notice its end only seconds later, and ports run out.
	_, _, addr := serve(f, "unix", filepath.Join(f.TempDir(), "s"), nil)
	f.Fuzz(func(t *testing.T, p []byte) {
		conn, err := net.Dial("unix", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(append([]byte(http2.ClientPreface), p...)); err != nil {
			return
		}
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the connection did not end")
		}
	})
}
