package h2

import (
	"bytes"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// blocked is a connection of which nothing is read until it is opened or closed.
type blocked struct {
	net.Conn
	opened chan struct{}
	once   sync.Once
}

func (b *blocked) Write(p []byte) (int, error) { <-b.opened; return len(p), nil }
func (b *blocked) open()                       { b.once.Do(func() { close(b.opened) }) }
func (b *blocked) Close() error                { b.open(); return nil }
func (b *blocked) SetDeadline(time.Time) error { return nil }

// replies answers every request at once, and calls open before; or it answers none, if keep is set.
type replies struct {
	open   func(s *Stream)
	keep   func(s *Stream)
	parts  []Part
	fields []byte
	// fieldsOf sees those of the requests.
	fieldsOf func(fields *Fields)
}

func (r *replies) Connect(c net.Conn) (net.Conn, any, error) { return c, nil, nil }
func (r *replies) Pause(any)                                 {}
func (r *replies) Open(s *Stream, fields *Fields, _ bool) Receiver {
	if r.fieldsOf != nil {
		r.fieldsOf(fields)
	}
	if r.open != nil {
		r.open(s)
	}
	if r.keep != nil {
		r.keep(s)
		return nil
	}
	s.Reply(nil, r.parts, r.fields)
	s.Left()
	return nil
}

// unread is a connection whose client reads nothing.
func unread(t *testing.T, handler *replies) (*conn, *blocked) {
	t.Helper()
	s := New(Options{Handler: handler, MaxStreams: 100, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20})
	t.Cleanup(s.Stop)
	under := &blocked{opened: make(chan struct{})}
	t.Cleanup(under.open)
	c := newConn(s, under)
	c.hello = true
	return c, under
}

// frames are written by write.
func frames(t *testing.T, write func(f *http2.Framer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(http2.NewFramer(&out, nil)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func ask(f *http2.Framer, id uint32, ends bool) error {
	return f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: id, BlockFragment: []byte{0x83, 0x86, 0x84}, EndHeaders: true, EndStream: ends})
}

// Ensure that a client that reads nothing is not answered further within one batch of requests: a few bytes of a request may
// have kilobytes of an answer.
func TestConn_take_unread(t *testing.T) {
	r := &replies{fields: make([]byte, 8<<10)}
	r.open = func(s *Stream) {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		if n := len(s.c.out) + s.c.unsent; n > maxBacklog {
			t.Errorf("a request is taken while %d bytes wait", n)
		}
	}
	c, under := unread(t, r)
	sent := frames(t, func(f *http2.Framer) error {
		err := f.WriteSettings()
		for id := uint32(1); id < 1000 && err == nil; id += 2 {
			err = ask(f, id, true)
		}
		return err
	})
	go func() {
		for !c.behind() { // the client begins to read
			select {
			case <-under.opened:
				return
			case <-time.After(time.Millisecond):
			}
		}
		under.open()
	}()
	if used, err := c.take(sent); used != len(sent) || err != nil {
		t.Errorf("took %d of %d bytes: %v", used, len(sent), err)
	}
}

// Ensure that a client that gives its connection no window cannot have the server keep the streams that it resets.
func TestConn_drop_withoutWindow(t *testing.T) {
	c, under := unread(t, &replies{parts: []Part{{Data: make([]byte, 100)}}, fields: []byte{0x88}})
	under.open()
	c.sendWindow = 0
	sent := frames(t, func(f *http2.Framer) error {
		err := f.WriteSettings()
		if err == nil {
			err = ask(f, 1, true) // this one stays, and is the first in line
		}
		for id := uint32(3); id < 2000 && err == nil; id += 2 {
			if err = ask(f, id, true); err == nil {
				err = f.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		return err
	})
	if _, err := c.take(sent); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) != 1 || len(c.ready) > 2 || c.stale > 1 {
		t.Errorf("%d streams are open, %d in line, of which %d are said to be dropped", len(c.streams), len(c.ready), c.stale)
	}
	c.sendWindow = 1000
	c.fill()
	if len(c.streams) != 0 || len(c.ready) != 0 || c.stale != 0 {
		t.Errorf("with a window %d streams are open, %d in line, of which %d are said to be dropped",
			len(c.streams), len(c.ready), c.stale)
	}
}

// atOnce lets those write that hold the lock of a connection, as one does that flushes it. The goroutine that writes the rest waits.
type atOnce struct {
	syscall.RawConn
	c     *conn
	later chan struct{}
}

func (a *atOnce) Write(f func(fd uintptr) bool) error {
	if a.c.mu.TryLock() {
		a.c.mu.Unlock()
		<-a.later
	}
	return a.RawConn.Write(f)
}

// Ensure that a goroutine that flushes a connection does not write all that a fast client takes: it has others to answer.
func TestConn_flush_large(t *testing.T) {
	if !rawSockets {
		t.Skip("sockets are not written themselves here")
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	r := &replies{}
	c, _ := unread(t, r)
	raw, err := nowhere.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	later := make(chan struct{})
	defer close(later)
	c.raw = &atOnce{RawConn: raw, c: c, later: later}
	c.sendWindow, c.firstWindow = maxWindow, maxWindow
	r.parts = []Part{{Data: make([]byte, 100*batchBytes)}}
	sent := frames(t, func(f *http2.Framer) error {
		return firstError(f.WriteSettings(), ask(f, 1, true))
	})
	r.open = func(s *Stream) { c.mu.Lock(); s.sendWindow = maxWindow; c.mu.Unlock() }
	if _, err := c.take(sent); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[1]; s == nil || s.waiting < 90*batchBytes || !c.writing {
		t.Error("nearly all was written at once")
	}
}

// counted counts writes.
type counted struct {
	syscall.RawConn
	writes int
}

func (c *counted) Write(f func(fd uintptr) bool) error {
	c.writes++
	return c.RawConn.Write(f)
}

// Ensure that what several goroutines send at once on streams of a connection is written at once.
func TestStream_Send_together(t *testing.T) {
	if !rawSockets {
		t.Skip("sockets are not written themselves here")
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	raw, err := nowhere.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	c, _ := unread(t, &replies{})
	writes := &counted{RawConn: raw}
	c.raw = writes
	var sending sync.WaitGroup
	var streams []*Stream
	for id := range uint32(50) {
		s := &Stream{id: 2*id + 1, c: c, sendWindow: 1000}
		c.streams[s.id] = s
		streams = append(streams, s)
	}
	for _, s := range streams {
		sending.Go(func() {
			if !s.Send([]Part{{Data: make([]byte, 10)}}) {
				t.Error("a stream has ended")
			}
		})
	}
	sending.Wait()
	if writes.writes > 25 {
		t.Errorf("%d writes", writes.writes)
	}
	if len(c.out) > 0 || len(c.ready) > 0 {
		t.Errorf("%d bytes and %d streams still wait", len(c.out), len(c.ready))
	}
}
