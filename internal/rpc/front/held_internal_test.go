package front

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// purse is an h2.Tab of all connections.
type purse struct {
	most int64

	mu         sync.Mutex
	held, peak int64
}

func (p *purse) Take(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+n > p.most {
		return false
	}
	p.held += n
	p.peak = max(p.peak, p.held)
	return true
}

func (p *purse) Force(n int64) bool {
	p.Give(-n)
	return true
}
func (p *purse) Give(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= n
	p.peak = max(p.peak, p.held)
}
func (*purse) Settle()     {}
func (*purse) Tight() bool { return false }
func (*purse) Close()      {}

func (p *purse) has() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Ensure that half-sent requests of every kind, and whole ones that wait, are counted as they come, that there is no more than a
// connection may have, and that all is given back.
func TestServer_requestsAreCounted(t *testing.T) {
	for _, path := range []string{"/t.S/Echo", "/t.S/Both"} {
		p := &purse{most: 256 << 10}
		c := serve(t, func(o *Options) {
			o.HTTP2.Tab, o.HTTP2.ConnWindow = func(net.Conn) h2.Tab { return p }, 8<<20
		})
		announced := h2.AppendPrefix(nil, 1<<20)
		for id := uint32(1); id < 20; id += 2 {
			c.call(id, path)
			data := append(slices.Clone(announced), strings.Repeat("x", 60_000)...)
			for len(data) > 0 {
				n := min(len(data), 16<<10)
				c.must(c.WriteData(id, false, data[:n]))
				data = data[n:]
			}
		}
		refused, read := 0, false
		c.must(c.WritePing(false, [8]byte{1}))
		for !read || refused < 6 {
			f, err := c.ReadFrame()
			c.must(err)
			switch f := f.(type) {
			case *http2.PingFrame:
				read = true
			case *http2.MetaHeadersFrame:
				for _, field := range f.Fields {
					if field.Name == "grpc-status" && field.Value == "8" {
						refused++
					}
				}
			}
		}
		if p.mu.Lock(); p.peak > p.most+64<<10 || p.peak < p.most/2 {
			t.Errorf("%s: %d bytes were counted, want about %d", path, p.peak, p.most)
		}
		p.mu.Unlock()
		for id := uint32(1); id < 20; id += 2 {
			c.must(c.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		// A call that was reset gives its bytes back when its goroutine has run; a call before that is refused.
		status := ""
		for id := uint32(21); id < 2000 && (status != "0" || p.has() > 32<<10); id += 2 {
			<-time.After(time.Millisecond)
			c.call(id, "/t.S/Echo")
			c.send(id, true, "x")
			status = c.status(id)
		}
		if status != "0" {
			t.Errorf("%s: a call afterwards ended with %s", path, status)
		}
		if got := p.has(); got > 32<<10 {
			t.Errorf("%s: %d bytes are counted afterwards", path, got)
		}
	}
}

// Ensure that what small messages unpack to is counted before it is there, for calls and for messages of a stream.
func TestServer_unpackedIsCounted(t *testing.T) {
	for _, path := range []string{"/t.S/Echo", "/t.S/Both"} {
		p := &purse{most: 1 << 20}
		c := serve(t, func(o *Options) {
			o.HTTP2.Tab, o.MaxMessage = func(net.Conn) h2.Tab { return p }, 2<<20
		})
		bomb, err := compress(admission.NewTurns(), encoding.GetCompressor("gzip"),
			mem.BufferSlice{mem.SliceBuffer(make([]byte, 2<<20))})
		c.must(err)
		for id := uint32(1); id < 20; id += 2 {
			c.call(id, path, "grpc-encoding", "gzip")
			c.must(c.WriteData(id, true, bomb))
			if got := c.status(id); got != "8" {
				t.Errorf("%s: a bomb ended with %s", path, got)
			}
		}
		if p.mu.Lock(); p.peak > p.most || p.peak < p.most/4 {
			t.Errorf("%s: %d bytes were counted of %d", path, p.peak, p.most)
		}
		p.mu.Unlock()
	}
}

// Ensure that the rest of a message has to come in time on a stream of many messages, and that a stream that is silent may be.
func TestServer_partialMessageOfStream(t *testing.T) {
	var mu sync.Mutex
	var ends []func()
	waiting := func() []func() {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ends)
	}
	c := serve(t, func(o *Options) {
		o.Unsent = func(end func()) (arrived func()) {
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, end)
			return func() {}
		}
	})
	c.call(1, "/t.S/Both")
	c.read()
	if n := len(waiting()); n > 0 {
		t.Fatalf("%d are waited for though nothing was sent", n)
	}
	c.must(c.WriteData(1, false, append(h2.AppendPrefix(nil, 100), 'x')))
	for len(waiting()) == 0 {
		c.read()
	}
	waiting()[0]()
	if got := c.status(1); got != "4" {
		t.Errorf("a stream with a part of a message ended with %s, want DEADLINE_EXCEEDED", got)
	}
}
