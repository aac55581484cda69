package h2

import (
	"bytes"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// blockOf is a block of the fields of a request, the last of which is as large as the table allows, and of as many bytes more as
// are asked for, which tail repeats.
func blockOf(t *testing.T, value, many int, tail ...byte) []byte {
	t.Helper()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {"x", strings.Repeat("a", value)}} {
		if err := enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	return append(block.Bytes(), bytes.Repeat(tail, many)...)
}

// lastEntry is a reference to the field that was put into the table last.
const lastEntry = 0x80 | staticEntries + 1

// ended returns with which code a connection ends; zero if it goes on.
func ended(t *testing.T, err error) Code {
	t.Helper()
	failed := connError{}
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return failed.code
}

// Ensure that no more fields are read once they are far larger than those of a request may be, however they come: a byte may name
// a field of kilobytes. Those that are not much larger are read, for the table, and the request is refused.
func TestConn_request_farTooLarge(t *testing.T) {
	const limit = 4096 // of unread
	for name, c := range map[string]struct {
		block  []byte
		pieces int
		most   int // fields that are read
		code   Code
	}{
		"a large field, named thousands of times":   {blockOf(t, 3900, 15_000, lastEntry), 2, pieceBytes + 4, EnhanceYourCalm},
		"in CONTINUATION frames":                    {blockOf(t, 3900, 15_000, lastEntry), 10, pieceBytes + 4, EnhanceYourCalm},
		"as many as are not kept, packed":           {blockOf(t, 3900, 30_000, lastEntry), 16, pieceBytes + 4, EnhanceYourCalm},
		"a small field, named thousands of times":   {blockOf(t, 1, 15_000, lastEntry), 1, 2 * pieceBytes, EnhanceYourCalm},
		"of the static table":                       {blockOf(t, 1, 15_000, 0x80|16), 1, 2 * pieceBytes, EnhanceYourCalm},
		"a large name, with values of its own":      {blockOf(t, 1, 5_000, 0x0f, 0x2f, 0), 1, 2 * pieceBytes, EnhanceYourCalm},
		"a large field that is named eight times":   {blockOf(t, limit/2, 8, lastEntry), 1, 12, NoError},
		"a small field that is named for 20 KB":     {blockOf(t, 1, 600, lastEntry), 1, 604, NoError},
		"a large field that is named sixteen times": {blockOf(t, limit/2, 16, lastEntry), 2, 20, EnhanceYourCalm},
	} {
		var opened int
		k, under := unread(t, &replies{open: func(*Stream) { opened++ }})
		under.open()
		_, err := k.take(frames(t, func(f *http2.Framer) error { return firstError(f.WriteSettings(), send(f, 1, c.block, c.pieces)) }))
		if code := ended(t, err); code != c.code || k.headers.count > c.most || opened > 0 {
			t.Errorf("%s: %d fields were read, %d requests opened, and the connection ended with %d", name, k.headers.count, opened, code)
		}
	}
}

// send writes the fields of a request in so many frames.
func send(f *http2.Framer, id uint32, block []byte, pieces int) error {
	size := (len(block) + pieces - 1) / pieces
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:size], EndHeaders: pieces == 1, EndStream: true})
	for block = block[size:]; len(block) > 0 && err == nil; block = block[min(size, len(block)):] {
		err = f.WriteContinuation(id, len(block) <= size, block[:min(size, len(block))])
	}
	return err
}

// Ensure that frames that are more work than others bring the connection nearer to its end: so many of them it bears at most.
func TestConn_take_work(t *testing.T) {
	settings := make([]http2.Setting, maxSettings)
	for i := range settings {
		settings[i] = http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)}
	}
	for name, flood := range map[string]struct {
		frame func(f *http2.Framer, n uint32) error
		most  int
	}{
		"as many settings as a frame may have": {
			func(f *http2.Framer, _ uint32) error { return f.WriteSettings(settings...) }, maxIdleScore / (maxSettings / settingsPerFrame)},
		"refused requests with many fields": {
			func(f *http2.Framer, n uint32) error { return send(f, 2*n+1, blockOf(t, 1, 640, lastEntry), 1) }, maxIdleScore / 40},
		"trailers with many fields": {
			func(f *http2.Framer, n uint32) error {
				return firstError(ask(f, 2*n+1, false), send(f, 2*n+1, blockOf(t, 1, 640, lastEntry), 1),
					f.WriteRSTStream(2*n+1, http2.ErrCodeCancel))
			}, maxIdleScore / 40},
		"changes of the size of an empty table": {
			func(f *http2.Framer, n uint32) error {
				return send(f, 2*n+1, append([]byte{0x83, 0x86, 0x84}, bytes.Repeat([]byte{tableEmptied}, 16_000)...), 1)
			}, maxIdleScore / (16_000 / fieldsPerFrame)},
	} {
		k, under := unread(t, &replies{fields: AppendStatus(nil, 200), keep: func(s *Stream) { s.Left() }})
		under.open()
		_, err := k.take(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
		n := 0
		for ; err == nil && n <= flood.most; n++ {
			_, err = k.take(frames(t, func(f *http2.Framer) error { return flood.frame(f, uint32(n)) }))
		}
		if code := ended(t, err); code != EnhanceYourCalm {
			t.Errorf("%s: after %d the connection ended with %d", name, n, code)
		}
	}
}

// alone has goroutines take turns on one processor.
func alone(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// Ensure that a connection that has sent much lets others run before it is read again.
func TestConn_take_yields(t *testing.T) {
	alone(t)
	c, under := unread(t, &replies{})
	under.open()
	_, err := c.take(frames(t, func(f *http2.Framer) error { return f.WriteSettings() }))
	sent := frames(t, func(f *http2.Framer) error { return f.WriteRawFrame(0x77, 0, 0, make([]byte, yieldBytes)) })
	var ran atomic.Bool
	go ran.Store(true)
	for range 2 { // one time in 61 the scheduler takes the goroutine that yields itself
		if err == nil {
			_, err = c.take(sent)
		}
	}
	if err != nil || !ran.Load() {
		t.Errorf("another goroutine ran: %t, and the connection ended with %v", ran.Load(), err)
	}
}

// workers work for streams in a goroutine each, which is told that the stream was lost.
type workers struct {
	replies
	lost, most int64
	told       atomic.Int64
}

// Open implements Handler.
func (w *workers) Open(*Stream, *Fields, bool) Receiver { return w }

// Receive implements Receiver.
func (w *workers) Receive([]byte, bool) {}

// Lost implements Receiver.
func (w *workers) Lost() {
	w.lost++
	w.most = max(w.most, w.lost-w.told.Load())
	go w.told.Add(1)
}

// Ensure that those who work for the streams of a connection are not all told at once that it has ended.
func TestConn_end_yields(t *testing.T) {
	alone(t)
	w := &workers{}
	s := New(Options{Handler: w, MaxStreams: 1000, MaxHeaderBytes: 4096, StreamWindow: 64 << 10, ConnWindow: 1 << 20})
	t.Cleanup(s.Stop)
	under := &blocked{opened: make(chan struct{})}
	under.open()
	c := newConn(s, under)
	c.hello = true
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		err := f.WriteSettings()
		for id := uint32(1); id < 2000 && err == nil; id += 2 {
			err = ask(f, id, false)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if c.end(); w.lost != 1000 || w.most > 3*yieldStreams {
		t.Errorf("%d streams were lost, and up to %d of them not told", w.lost, w.most)
	}
}

// babbler is a connection whose client sends a few bytes all the time.
type babbler struct {
	net.Conn
	reads int
	until time.Time
}

func (b *babbler) SetReadDeadline(at time.Time) error { b.until = at; return nil }
func (b *babbler) Read([]byte) (int, error) {
	b.reads++
	<-time.After(time.Microsecond)
	if time.Now().After(b.until) {
		return 0, os.ErrDeadlineExceeded
	}
	return 9, nil
}

// Ensure that a client that goes on sending after the end of its connection does not have each of its writes read.
func TestConn_lastWords_pauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &babbler{}
		c := &conn{net: b}
		if c.lastWords(); b.reads > int(lingering/lingeringPause)+1 {
			t.Errorf("it was read %d times", b.reads)
		}
	})
}

// Ensure that calls that are refused as they come are not written one by one, but once all that came was handled.
func TestStream_Refuse(t *testing.T) {
	r := &replies{keep: func(s *Stream) {
		s.Refuse(AppendStatus(nil, 200))
		s.Left()
	}}
	early := 0
	r.open = func(s *Stream) {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		if s.c.writing {
			early++
		}
	}
	c, under := unread(t, r)
	sent := frames(t, func(f *http2.Framer) error {
		err := f.WriteSettings()
		for id := uint32(1); id < 100 && err == nil; id += 2 {
			err = ask(f, id, true)
		}
		return err
	})
	if _, err := c.take(sent); err != nil || early > 0 || !c.writing {
		t.Errorf("at %d calls of 50 something was being written, and at the end: %t, %v", early, c.writing, err)
	}
	under.open()
}

// Ensure that calls with hundreds of fields are a flood although they are answered, and those with dozens are none.
func TestConn_request_hundredsOfFields(t *testing.T) {
	for fields, want := range map[int]Code{480: EnhanceYourCalm, 100: NoError} {
		s := New(Options{Handler: &replies{fields: AppendStatus(nil, 200)}, MaxStreams: 100, MaxHeaderBytes: 16 << 10,
			StreamWindow: 64 << 10, ConnWindow: 1 << 20})
		t.Cleanup(s.Stop)
		under := &blocked{opened: make(chan struct{})}
		under.open()
		c := newConn(s, under)
		c.hello = true
		err := takeFrames(t, c, func(f *http2.Framer) error {
			err := f.WriteSettings()
			for n := uint32(0); n < 1000 && err == nil; n++ {
				err = send(f, 2*n+1, blockOf(t, 0, fields, lastEntry), 1)
			}
			return err
		})
		if code := ended(t, err); code != want {
			t.Errorf("calls with %d fields: the connection ended with %d", fields, code)
		}
	}
}
