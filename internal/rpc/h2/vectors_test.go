package h2_test

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// lender answers with parts that it takes back, and writes over, as soon as they are released.
type lender struct {
	echo
	lent, returned atomic.Int64
}

// taken is what a part holds that was taken back.
const taken = 0xff

// partSizes are below and above what is copied, and what fits into a frame.
var partSizes = []int{1, 5_000, 100, 16_384, 2_047, 2_048, 17_000, 40_000, 3, 9_000}

// wholeBytes is the size of an answer of one part: more than sockets hold.
const wholeBytes = 32 << 20

// loan is the content of an answer of so many parts.
func loan(parts int) (all [][]byte) {
	for i := range parts {
		all = append(all, bytes.Repeat([]byte{byte(i % taken)}, partSizes[i%len(partSizes)]))
	}
	return all
}

type lent struct{ s *h2.Stream }

func (b lent) Receive([]byte, bool) {}
func (b lent) Lost()                { b.s.Left() }

func (e *lender) Connect(c net.Conn) (net.Conn, any, error) { return c, e, nil }
func (e *lender) Open(s *h2.Stream, fields *h2.Fields, _ bool) h2.Receiver {
	parts, _ := strconv.Atoi(fields.List[len(fields.List)-1].Value)
	all := loan(parts)
	if parts == 1 {
		all[0] = make([]byte, wholeBytes)
	}
	var answer []h2.Part
	for _, data := range all {
		var once atomic.Bool
		e.lent.Add(1)
		answer = append(answer, h2.Part{Data: data, Release: func() {
			if !once.CompareAndSwap(false, true) {
				panic("a part was released twice")
			}
			for i := range data {
				data[i] = taken
			}
			e.returned.Add(1)
		}})
	}
	s.Reply(h2.AppendStatus(nil, 200), answer, h2.AppendField(nil, "grpc-status", "0"))
	s.Left()
	return nil
}

// borrow connects to a lender, with windows that hold back nothing and a small buffer.
func borrow(t *testing.T, socket func(net.Conn) h2.Socket) (*client, *lender) {
	t.Helper()
	e := &lender{}
	s := h2.New(h2.Options{Handler: e, MaxStreams: maxStreams, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20,
		Handshake: timeLimit, Socket: socket})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(s.Stop)
	c := dialAt(t, l.Addr().String())
	if err := c.conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	const all = 1 << 30
	if err := c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: all}); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteWindowUpdate(0, all); err != nil {
		t.Fatal(err)
	}
	return c, e
}

// Ensure that parts of answers come as they were lent, although they are taken back as soon as they may be: also those of streams
// that their client resets while they are being written.
func TestStream_Reply_lent(t *testing.T) {
	for name, socket := range map[string]func(net.Conn) h2.Socket{
		"socket": func(c net.Conn) h2.Socket { return c.(*net.TCPConn) }, "other connection": func(net.Conn) h2.Socket { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			const streams, parts = 20, 200
			c, e := borrow(t, socket)
			whole := bytes.Join(loan(parts), nil)
			for i := range uint32(streams) {
				if err := c.request(2*i+1, true, "parts", strconv.Itoa(parts)); err != nil {
					t.Fatal(err)
				}
			}
			got, reset, open := map[uint32]int{}, map[uint32]bool{}, streams
			for open > 0 {
				f, err := c.ReadFrame()
				if err != nil {
					t.Fatal(err)
				}
				id := f.Header().StreamID
				switch f := f.(type) {
				case *http2.DataFrame:
					if n := got[id]; !bytes.Equal(f.Data(), whole[n:n+len(f.Data())]) {
						t.Fatalf("stream %d has something else from byte %d on", id, n)
					}
					got[id] += len(f.Data())
					if id%3 == 0 && !reset[id] {
						reset[id] = true
						open--
						if err := c.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
							t.Fatal(err)
						}
					}
				case *http2.MetaHeadersFrame:
					if !f.StreamEnded() {
						continue
					}
					if got[id] != len(whole) {
						t.Errorf("stream %d ends after %d bytes", id, got[id])
					}
					if !reset[id] {
						open--
					}
				}
			}
			c.conn.Close()
			for e.returned.Load() != streams*parts || e.lent.Load() != streams*parts {
				<-time.After(time.Millisecond)
			}
		})
	}
}

// Ensure that what was lent comes back when the client goes away in the middle.
func TestStream_Reply_lentAndLost(t *testing.T) {
	c, e := borrow(t, func(c net.Conn) h2.Socket { return c.(*net.TCPConn) })
	const parts = 2000
	if err := c.request(1, true, "parts", strconv.Itoa(parts)); err != nil {
		t.Fatal(err)
	}
	for begun := false; !begun; {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		_, begun = f.(*http2.DataFrame)
	}
	c.conn.Close()
	for e.returned.Load() != parts {
		<-time.After(time.Millisecond)
	}
}

// Ensure that a part of a stream that is reset is not taken back while a piece of it is being written.
func TestStream_Reply_lentAndReset(t *testing.T) {
	c, e := borrow(t, func(c net.Conn) h2.Socket { return c.(*net.TCPConn) })
	if err := c.request(1, true, "parts", "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ReadFrame(); err != nil { // of what is there, which holds up nothing: the rest waits for this client
		t.Fatal(err)
	}
	for e.lent.Load() != 1 {
		<-time.After(time.Millisecond)
	}
	if err := errors.Join(c.WriteRSTStream(1, http2.ErrCodeCancel), c.request(3, true, "parts", "2")); err != nil {
		t.Fatal(err)
	}
	for e.lent.Load() != 3 { // the reset was read
		<-time.After(time.Millisecond)
	}
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := f.(*http2.MetaHeadersFrame); ok && h.StreamID == 3 && h.StreamEnded() {
			break
		}
		if d, ok := f.(*http2.DataFrame); ok && d.StreamID == 1 && bytes.IndexByte(d.Data(), taken) >= 0 {
			t.Fatal("a part was written that had been taken back")
		}
	}
	for e.returned.Load() != 3 {
		<-time.After(time.Millisecond)
	}
}
