package h2

import (
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// Ensure that small messages of streams whose client gives no window take no room beyond what there is, beside one at a time for
// which the stream has counted; and that this one is sent although there is no room.
func TestStream_Send_smallWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 10
		r := &replies{}
		c, p, _ := counting(t, r, 64<<10)
		defer c.server.Stop()
		var open []*Stream
		r.keep = func(s *Stream) { open = append(open, s) }
		if err := takeFrames(t, c, func(f *http2.Framer) error {
			err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for id := uint32(1); id < 2*streams && err == nil; id += 2 {
				err = ask(f, id, true)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		p.most = p.held // others have taken the rest
		most := p.held
		small := func() []Part { return []Part{{Data: make([]byte, promisedBytes)}} }
		for i, s := range open {
			if !s.Send(small()) {
				t.Errorf("stream %d has no room for one small message", i)
			}
			begun := time.Now()
			if s.Send(small()) || time.Since(begun) < scarceUnreadTimeout {
				t.Errorf("stream %d has room for another one, or ended after %s", i, time.Since(begun))
			}
			s.Left()
			p.most = p.held
		}
		if c.settledOutput(); len(open) != streams || p.peak > most || p.held != 0 {
			t.Errorf("of %d streams at most %d bytes are counted, of %d, and %d afterwards", len(open), p.peak, most, p.held)
		}
	})
}

// Ensure that a message for which there was no room leaves its place to the next one when it is sent.
func TestStream_Send_smallOneByOne(t *testing.T) {
	r := &replies{}
	c, p, w := counting(t, r, 8<<10)
	var s *Stream
	r.keep = func(opened *Stream) { s = opened }
	if err := takeFrames(t, c, func(f *http2.Framer) error { return errors.Join(f.WriteSettings(), ask(f, 1, true)) }); err != nil {
		t.Fatal(err)
	}
	p.most = p.held
	for range 20 {
		if !s.Send([]Part{{Data: make([]byte, promisedBytes)}}) {
			t.Fatal("a small message has no room although its client reads")
		}
		c.settledOutput()
	}
	if got := w.out.Len(); got < 20*promisedBytes {
		t.Errorf("%d bytes were sent", got)
	}
}

// Ensure that small answers that wait for a window take no room beyond what there is, and are given.
func TestConn_smallAnswersWithoutWindow(t *testing.T) {
	r := &replies{parts: []Part{{Data: make([]byte, promisedBytes)}}, fields: AppendField(nil, "grpc-status", "0")}
	c, p, w := counting(t, r, 40*streamBytes)
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for id := uint32(1); id < 200 && err == nil; id += 2 {
			r.parts = []Part{{Data: make([]byte, promisedBytes)}}
			err = ask(f, id, true)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.settledOutput()
	kept := 0
	for _, s := range c.streams {
		kept += s.waiting / promisedBytes
	}
	if refused := w.statuses(t)["8"]; p.peak > p.most || kept == 0 || kept+refused != 100 {
		t.Errorf("at most %d bytes are counted of %d, %d answers are kept, %d requests were refused", p.peak, p.most, kept, refused)
	}
}

// Ensure that frames that are not there in full are kept while there is room, a little beyond that, and that the connection ends then.
func TestConn_keepPart_noRoom(t *testing.T) {
	c, p, w := counting(t, &replies{}, 1<<10)
	p.forced = 1 << 10
	if err := takeFrames(t, c, func(f *http2.Framer) error { return f.WriteSettings() }); err != nil {
		t.Fatal(err)
	}
	sent := frames(t, func(f *http2.Framer) error { return f.WriteData(1, false, make([]byte, 8<<10)) })
	if _, err := c.take(sent[:1509]); err != nil || p.held != 1509 {
		t.Errorf("with room that may be forced: %v, %d bytes are counted", err, p.held)
	}
	c.settledOutput()
	_, err := c.take(sent[:3000])
	if c.settledOutput(); err == nil || !c.ended || w.statuses(t)["goaway"] != 1 || p.held > p.most+p.forced {
		t.Errorf("without room: %v, %v, %d bytes are counted", err, w.statuses(t), p.held)
	}
}

// Ensure that a connection of which nothing is read ends once its host has taken what it may force.
func TestConn_weigh_noRoom(t *testing.T) {
	for _, forced := range []int64{8 << 10, 1 << 10} {
		r := &replies{fields: make([]byte, 8<<10)}
		c, under := unread(t, r)
		p := &purse{most: 2 * streamBytes, forced: forced}
		c.tab = p
		go func() {
			for !c.behind() {
				<-time.After(time.Millisecond)
			}
			under.open()
		}()
		_, err := c.take(frames(t, func(f *http2.Framer) error { return errors.Join(f.WriteSettings(), ask(f, 1, true)) }))
		c.mu.Lock()
		if ended := c.ended; ended != (forced == 1<<10) || ended != (err != nil) {
			t.Errorf("%d bytes may be forced: the connection has ended: %t, %v", forced, ended, err)
		}
		c.mu.Unlock()
	}
}

// charged is Hosts that writes down what hosts abandon, and refuses them from some point on.
type charged struct{ requests, most int }

func (h *charged) Admits(net.Addr) bool         { return h.requests <= h.most }
func (h *charged) Add(_ net.Addr, requests int) { h.requests += requests }

// Ensure that hasty resets are charged to the host, unless other requests of the connection pay for them, and that a connection ends
// whose host has abandoned too much.
func TestConn_reset_charged(t *testing.T) {
	flood := func(f *http2.Framer, from, many uint32) (err error) {
		for id := from; id < from+2*many && err == nil; id += 2 {
			err = errors.Join(ask(f, id, false), f.WriteData(id, false, []byte("x")), f.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		return err
	}
	r := &replies{keep: func(s *Stream) { s.Left() }}
	c, _, _ := counting(t, r, 1<<20)
	c.net = addressed{c.net}
	h := &charged{most: 200}
	c.server.options.Hosts = h
	c.floods.score.Store(-100) // by which others are paid
	if err := takeFrames(t, c, func(f *http2.Framer) error { return errors.Join(f.WriteSettings(), flood(f, 1, 100)) }); err != nil {
		t.Fatal(err)
	}
	if h.requests > resetsTogether {
		t.Errorf("%d resets are charged that were paid for", h.requests)
	}
	err := takeFrames(t, c, func(f *http2.Framer) error { return flood(f, 201, 400) })
	if failed := (connError{}); !errors.As(err, &failed) || failed.code != EnhanceYourCalm || h.requests > h.most+resetsTogether {
		t.Errorf("a host that has abandoned %d: %v", h.requests, err)
	}
}

// addressed has an address.
type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} }

// Ensure that a connection whose client resets requests that are still worked for is read on once they have ended, or after a pause.
func TestConn_catchUp(t *testing.T) {
	for name, left := range map[string]time.Duration{"they end": endPause / 2, "they do not": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			r := &replies{}
			var mu sync.Mutex // the timer's goroutine reads them
			var open []*Stream
			r.keep = func(s *Stream) {
				mu.Lock()
				defer mu.Unlock()
				open = append(open, s)
			}
			c, _, _ := counting(t, r, 1<<20)
			defer c.server.Stop()
			const streams = maxUnended + 1
			ended := time.AfterFunc(left, func() {
				mu.Lock()
				defer mu.Unlock()
				for _, s := range open {
					s.Left()
				}
			})
			defer ended.Stop()
			begun := time.Now()
			err := takeFrames(t, c, func(f *http2.Framer) error {
				err := f.WriteSettings()
				for id := uint32(1); id < 2*streams && err == nil; id += 2 {
					err = errors.Join(ask(f, id, false), f.WriteRSTStream(id, http2.ErrCodeCancel))
				}
				return err
			})
			if took := time.Since(begun); err != nil || took != min(left, endPause) {
				t.Errorf("%s: %v after %s", name, err, took)
			}
			if c.settledOutput(); c.ended {
				t.Errorf("%s: the connection has ended", name)
			}
		})
	}
}
