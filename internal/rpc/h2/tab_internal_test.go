package h2

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// purse is a Tab of its own.
type purse struct {
	most, held, peak int64
	forced           int64 // how much more may be forced
	tight, closed    bool
}

func (p *purse) Take(n int64) bool {
	if p.held+n > p.most {
		return false
	}
	p.held += n
	p.peak = max(p.peak, p.held)
	return true
}
func (p *purse) Force(n int64) bool {
	least := p.most
	p.most += p.forced
	taken := p.Take(n)
	p.most = least
	return taken
}
func (p *purse) Give(n int64) { p.held -= n }
func (p *purse) Settle()      {}
func (p *purse) Tight() bool  { return p.tight }
func (p *purse) Close()       { p.held, p.closed = 0, true }

// counting is a connection whose client's bytes are counted, and which writes into what it returns.
func counting(t *testing.T, handler *replies, most int64) (*conn, *purse, *written) {
	t.Helper()
	c, under := unread(t, handler)
	under.open()
	p, w := &purse{most: most}, &written{blocked: under}
	c.tab, c.net = p, w
	o := &c.server.options
	o.Exhausted = AppendField(AppendStatus(nil, 200), "grpc-status", "8")
	o.TooLarge, o.Unread = AppendField(AppendStatus(nil, 200), "grpc-status", "9"), AppendField(nil, "grpc-status", "10")
	return c, p, w
}

// written keeps what is written to a connection.
type written struct {
	*blocked
	out bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) { return w.out.Write(b) }

// settled waits until all that may be written was.
func (c *conn) settledOutput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	for c.writing {
		c.drained.Wait()
	}
}

// statuses counts how streams ended, by the values of grpc-status.
func (w *written) statuses(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	f := http2.NewFramer(nil, bytes.NewReader(w.out.Bytes()))
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return found
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range frame.Fields {
				if field.Name == "grpc-status" {
					found[field.Value]++
				}
			}
		case *http2.GoAwayFrame:
			found["goaway"]++
		}
	}
}

// Ensure that answers of every size are counted while they wait for a window, that further requests are refused when there is no room,
// and that all comes back when the client resets its streams.
func TestConn_answersWithoutWindow(t *testing.T) {
	const most, streams = 1 << 20, 100
	r := &replies{parts: []Part{{Data: make([]byte, 61_000)}}, fields: AppendField(nil, "grpc-status", "0")}
	c, p, w := counting(t, r, most)
	err := takeFrames(t, c, func(f *http2.Framer) error {
		err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for id := uint32(1); id < 2*streams && err == nil; id += 2 {
			err = ask(f, id, true)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.settledOutput()
	if p.peak > most || p.held < most-2*61_000 {
		t.Errorf("%d bytes are counted, at most %d, want about %d", p.held, p.peak, most)
	}
	if refused := w.statuses(t)["8"]; refused < streams-most/61_000 || refused == streams {
		t.Errorf("%d of %d requests were refused", refused, streams)
	}
	err = takeFrames(t, c, func(f *http2.Framer) (err error) {
		for id := uint32(1); id < 2*streams && err == nil; id += 2 {
			err = f.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.settledOutput()
	if p.held != 0 {
		t.Errorf("afterwards %d bytes are counted", p.held)
	}
	if c.end(); !p.closed {
		t.Error("the tab of a connection that has ended is open")
	}
}

func takeFrames(t *testing.T, c *conn, write func(f *http2.Framer) error) error {
	t.Helper()
	sent := frames(t, write)
	used, err := c.take(sent)
	if err == nil && used != len(sent) {
		t.Errorf("%d of %d bytes were taken", used, len(sent))
	}
	return err
}

// Ensure that what a client takes is not counted any more, however it is cut.
func TestConn_answersTaken(t *testing.T) {
	r := &replies{parts: []Part{{Data: make([]byte, 61_000)}}, fields: AppendField(nil, "grpc-status", "0")}
	c, p, w := counting(t, r, 1<<20)
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), ask(f, 1, true))
	}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ window, least, most int64 }{{1000, 60_000, 64_000}, {30_000, 30_000, 34_000}, {30_000, 0, 0}} {
		if err := takeFrames(t, c, func(f *http2.Framer) error { return f.WriteWindowUpdate(1, uint32(step.window)) }); err != nil {
			t.Fatal(err)
		}
		if c.settledOutput(); p.held < step.least || p.held > step.most {
			t.Errorf("with %d bytes more of a window %d are counted, want %d to %d", step.window, p.held, step.least, step.most)
		}
	}
	if w.statuses(t)["0"] != 1 {
		t.Errorf("the call ended so: %v", w.statuses(t))
	}
}

// Ensure that what was counted elsewhere is not counted twice.
func TestConn_countedElsewhere(t *testing.T) {
	r := &replies{parts: []Part{{Data: make([]byte, 1<<20), Counted: true}}, fields: AppendField(nil, "grpc-status", "0")}
	c, p, w := counting(t, r, 64<<10)
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), ask(f, 1, true))
	}); err != nil {
		t.Fatal(err)
	}
	if c.settledOutput(); p.peak > 2*streamBytes || len(w.statuses(t)) > 0 {
		t.Errorf("%d bytes were counted: %v", p.peak, w.statuses(t))
	}
}

// Ensure that a stream whose client takes nothing ends while room is scarce, with a status, after 30 seconds; and not before, nor in a
// minute if there is room.
func TestConn_tend_unread(t *testing.T) {
	r := &replies{parts: []Part{{Data: make([]byte, 10_000)}}, fields: AppendField(nil, "grpc-status", "0")}
	c, p, w := counting(t, r, 1<<20)
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), ask(f, 1, true))
	}); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		c.tend(time.Now(), 5*time.Second)
	}
	if c.settledOutput(); p.held < 10_000 {
		t.Fatal("the answer was given up while there is room")
	}
	p.tight = true
	c.tend(time.Now(), 5*time.Second)
	if c.settledOutput(); p.held != 0 || w.statuses(t)["10"] != 1 {
		t.Errorf("%d bytes are counted, and the stream ended so: %v", p.held, w.statuses(t))
	}
}

// Ensure that a goroutine that sends on a stream waits for room, and that the stream ends if there is none for long.
func TestStream_Send_noRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &replies{}
		c, p, _ := counting(t, r, 32<<10)
		defer c.server.Stop()
		var stream *Stream
		r.keep = func(s *Stream) { stream = s }
		if err := takeFrames(t, c, func(f *http2.Framer) error {
			return errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), ask(f, 1, true))
		}); err != nil {
			t.Fatal(err)
		}
		part := []Part{{Data: make([]byte, 20<<10)}}
		if !stream.Send(part) {
			t.Fatal("there is room for one")
		}
		begun := time.Now()
		if stream.Send(part) || time.Since(begun) < scarceUnreadTimeout {
			t.Errorf("the stream goes on, or ended after %s", time.Since(begun))
		}
		stream.Left()
		if c.settledOutput(); p.held != 0 {
			t.Errorf("afterwards %d bytes are counted", p.held)
		}
	})
}

// Ensure that a frame, and the fields of a request, have to come in full.
func TestConn_tend_parts(t *testing.T) {
	for name, write := range map[string]func(f *http2.Framer) error{
		"a frame": func(f *http2.Framer) error { return f.WriteData(1, false, make([]byte, 1000)) },
		"fields": func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: make([]byte, 2000)})
		},
	} {
		c, p, w := counting(t, &replies{}, 1<<20)
		if err := takeFrames(t, c, func(f *http2.Framer) error { return f.WriteSettings() }); err != nil {
			t.Fatal(err)
		}
		sent := frames(t, write)
		if name == "a frame" {
			sent = sent[:900]
		}
		if _, err := c.take(sent); err != nil {
			t.Fatal(err)
		}
		if p.held < 900 {
			t.Errorf("%s: %d bytes are counted", name, p.held)
		}
		c.settledOutput()
		now := time.Now()
		if c.tend(now, 5*time.Second); w.statuses(t)["goaway"] > 0 {
			t.Errorf("%s: the connection ended at once", name)
		}
		c.tend(now.Add(partTimeout+time.Second), 5*time.Second)
		if c.settledOutput(); !c.ended || w.statuses(t)["goaway"] != 1 {
			t.Errorf("%s: the connection goes on: %v", name, w.statuses(t))
		}
	}
}

// Ensure that requests with too many fields are answered, that the table is kept, and that the connection goes on; but not for ever.
func TestConn_request_manyFields(t *testing.T) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	next := uint32(1)
	send := func(f *http2.Framer, value string) (err error) {
		block.Reset()
		for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {"known", "field"}, {"x", value}} {
			if err = enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
				return err
			}
		}
		left, first := block.Bytes(), true
		for len(left) > 0 && err == nil {
			piece := left[:min(len(left), 2500)]
			if left = left[len(piece):]; first {
				err = f.WriteHeaders(http2.HeadersFrameParam{
					StreamID: next, BlockFragment: piece, EndHeaders: len(left) == 0, EndStream: true})
			} else {
				err = f.WriteContinuation(next, len(left) == 0, piece)
			}
			first = false
		}
		next += 2
		return err
	}
	r := &replies{fields: AppendField(AppendStatus(nil, 200), "grpc-status", "0")}
	var seen []string
	r.fieldsOf = func(fields *Fields) {
		for _, f := range fields.List {
			if f.Name == "known" {
				seen = append(seen, f.Value)
			}
		}
	}
	c, _, w := counting(t, r, 1<<20) // of which fields may have 4096 bytes
	if err := takeFrames(t, c, func(f *http2.Framer) (err error) {
		err = f.WriteSettings()
		for _, n := range []int{10, 5000, 3500, 20_000, 9_000, 10} {
			err = errors.Join(err, send(f, string(bytes.Repeat([]byte("{"), n)))) // a character that is not packed
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.settledOutput()
	if got := w.statuses(t); got["9"] != 3 || got["0"] != 3 || len(seen) != 3 || seen[2] != "field" {
		t.Errorf("requests ended so: %v; and %q was read", got, seen)
	}
	err := takeFrames(t, c, func(f *http2.Framer) error { return send(f, string(bytes.Repeat([]byte("{"), 40_000))) })
	if failed := (connError{}); !errors.As(err, &failed) || failed.code != EnhanceYourCalm {
		t.Errorf("of fields without end: got %v", err)
	}
}

// Ensure that requests which are reset at once are a flood, also if they have sent something.
func TestConn_reset_hasty(t *testing.T) {
	r := &replies{keep: func(s *Stream) { s.Left() }}
	c, _, _ := counting(t, r, 1<<20)
	err := takeFrames(t, c, func(f *http2.Framer) error {
		err := f.WriteSettings()
		for id := uint32(1); id < 4*maxIdleScore && err == nil; id += 2 {
			err = errors.Join(ask(f, id, false), f.WriteData(id, false, []byte("x")), f.WriteRSTStream(id, http2.ErrCodeCancel))
		}
		return err
	})
	if failed := (connError{}); !errors.As(err, &failed) || failed.code != EnhanceYourCalm {
		t.Errorf("got %v", err)
	}
}

// Ensure that HEADERS on a stream which the server has just reset are ignored, and on one that its client reset are an error.
func TestConn_request_released(t *testing.T) {
	r := &replies{fields: AppendField(AppendStatus(nil, 200), "grpc-status", "8")}
	c, _, _ := counting(t, r, 1<<20)
	trailers := func(f *http2.Framer, id uint32) error {
		return f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: AppendField(nil, "x", "y"), EndHeaders: true, EndStream: true})
	}
	if err := takeFrames(t, c, func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(), ask(f, 1, false), trailers(f, 1), ask(f, 3, true))
	}); err != nil {
		t.Errorf("trailers of a stream that was answered: %v", err)
	}
	err := takeFrames(t, c, func(f *http2.Framer) error {
		return errors.Join(ask(f, 5, true), trailers(f, 5))
	})
	if failed := (connError{}); !errors.As(err, &failed) || failed.code != StreamClosed {
		t.Errorf("HEADERS of a stream that its client has ended: %v", err)
	}
}
