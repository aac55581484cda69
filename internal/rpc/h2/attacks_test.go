package h2_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// flood sends frames until the connection ends, 100,000 at most, and returns how many there were.
func (c *client) flood(frame func(n uint32) error) (sent chan uint32) {
	sent = make(chan uint32, 1)
	go func() {
		n := uint32(0)
		for n < 100_000 && frame(n) == nil {
			n++
		}
		sent <- n
	}()
	return sent
}

// Ensure that floods of frames that bring nothing forward end the connection with ENHANCE_YOUR_CALM, whichever they are.
func TestServer_floods(t *testing.T) {
	for _, flood := range []struct {
		name  string
		frame func(c *client, n uint32) error
	}{
		{"rapid reset, CVE-2023-44487", func(c *client, n uint32) error {
			return errors.Join(c.request(2*n+1, false, "silent", "1"), c.WriteRSTStream(2*n+1, http2.ErrCodeCancel))
		}},
		{"resets by the server, CVE-2025-8671", func(c *client, n uint32) error {
			return errors.Join(c.request(2*n+1, false, "silent", "1"), c.WriteData(2*n+1, false, []byte("x")),
				c.WriteRawFrame(http2.FrameWindowUpdate, 0, 2*n+1, make([]byte, 4)))
		}},
		{"malformed requests", func(c *client, n uint32) error { return c.request(2*n+1, true, "connection", "close") }},
		{"settings, CVE-2019-9515", func(c *client, n uint32) error { return c.WriteSettings() }},
		{"fat settings", func(c *client, n uint32) error {
			return c.WriteSettings(make([]http2.Setting, 101)...)
		}},
		{"acknowledgements of settings", func(c *client, n uint32) error { return c.WriteSettingsAck() }},
		{"pings, CVE-2019-9512", func(c *client, n uint32) error { return c.WritePing(false, [8]byte{byte(n)}) }},
		{"pings of bandwidth", func(c *client, n uint32) error {
			return c.WritePing(false, [8]byte{2, 4, 16, 16, 9, 14, 7, 7})
		}},
		{"answers to pings", func(c *client, n uint32) error { return c.WritePing(true, [8]byte{byte(n)}) }},
		{"priorities, CVE-2019-9513", func(c *client, n uint32) error {
			return c.WritePriority(2*n+1, http2.PriorityParam{StreamDep: 2*n + 3, Weight: 1})
		}},
		{"windows of the connection", func(c *client, n uint32) error { return c.WriteWindowUpdate(0, 1) }},
		{"windows of a stream", func(c *client, n uint32) error {
			if n == 0 {
				return c.request(1, false, "silent", "1")
			}
			return c.WriteWindowUpdate(1, 1)
		}},
		{"unknown frames", func(c *client, n uint32) error { return c.WriteRawFrame(0x77, 0, 0, nil) }},
		{"GOAWAY", func(c *client, n uint32) error { return c.WriteGoAway(0, http2.ErrCodeNo, nil) }},
		{"empty DATA, CVE-2019-9518", func(c *client, n uint32) error {
			if n == 0 {
				return c.request(1, false, "silent", "1")
			}
			return c.WriteData(1, false, nil)
		}},
		{"padding", func(c *client, n uint32) error {
			if n == 0 {
				return c.request(1, false, "silent", "1")
			}
			return c.WriteDataPadded(1, false, nil, make([]byte, 255))
		}},
	} {
		t.Run(flood.name, func(t *testing.T) {
			c := dial(t)
			sent := c.flood(func(n uint32) error { return flood.frame(c, n) })
			if code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got %v", code)
			}
			c.conn.Close()
			if n := <-sent; n == 100_000 {
				t.Error("all were taken")
			}
			if n := c.server.Calmed(); n != 1 {
				t.Errorf("%d were counted, want one", n)
			}
		})
	}
}

// Ensure that a client that takes a large answer by single bytes is sent away (CVE-2019-9511, CVE-2019-9517).
func TestServer_dribble(t *testing.T) {
	c := dial(t)
	if err := errors.Join(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}),
		c.request(1, true, "large", "1")); err != nil {
		t.Fatal(err)
	}
	sent := c.flood(func(uint32) error { return c.WriteWindowUpdate(1, 1) })
	if code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("got %v", code)
	}
	c.conn.Close()
	<-sent
}

// Ensure that one frame with many settings, while many streams are open, is as much work as one with one.
func TestServer_manySettings(t *testing.T) {
	c := dial(t)
	for id := uint32(1); id < 2*90; id += 2 {
		if err := c.request(id, true, "large", "1"); err != nil {
			t.Fatal(err)
		}
	}
	var settings []http2.Setting
	for n := range uint32(100) {
		settings = append(settings, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<20 + n})
	}
	if err := errors.Join(c.WriteSettings(settings...), c.WriteWindowUpdate(0, 1<<30)); err != nil {
		t.Fatal(err)
	}
	if got := c.answer(1); len(got) != 1<<20 {
		t.Errorf("got %d bytes", len(got))
	}
	if err := c.WriteSettings(append(settings, settings[0])...); err != nil {
		t.Fatal(err)
	}
	if code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("of more settings than there can be: got %v", code)
	}
}

// Ensure that fields without end are not collected (CVE-2023-45288), packed or unpacked.
func TestServer_longFields(t *testing.T) {
	c := dial(t)
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block()}); err != nil {
		t.Fatal(err)
	}
	sent := c.flood(func(uint32) error { return c.WriteContinuation(1, false, nil) })
	if code := c.goAway(); code != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("CONTINUATION without end: got %v", code)
	}
	c.conn.Close()
	if n := <-sent; n > 50_000 {
		t.Errorf("%d were taken", n)
	}
}

// Ensure that fields that are small only as long as they are packed are refused, and cost the client its connection.
func TestServer_packedFields(t *testing.T) {
	c := dial(t)
	big := strings.Repeat("a", 3000)
	sent := c.flood(func(n uint32) error { return c.request(2*n+1, true, "x", big, "x", big, "x", big) }) // one byte each
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if reset, ok := f.(*http2.RSTStreamFrame); ok && reset.ErrCode != http2.ErrCodeFrameSize {
			t.Errorf("got %v", reset.ErrCode)
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			if g.ErrCode != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got %v", g.ErrCode)
			}
			break
		}
	}
	c.conn.Close()
	<-sent
	if n := c.echo.open.Load(); n != 0 {
		t.Errorf("%d requests were opened", n)
	}
}

// Ensure that a client that reads nothing has at most so many requests served as it may have streams.
func TestServer_deafClient(t *testing.T) {
	c := dial(t)
	if err := errors.Join(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}),
		c.WriteWindowUpdate(0, 1<<30)); err != nil {
		t.Fatal(err)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	<-c.flood(func(n uint32) error { return c.request(2*n+1, true, "large", "1") })
	if n := c.echo.answered.Load(); n > 2*maxStreams {
		t.Errorf("%d answers of a megabyte are kept", n)
	}
	c.conn.Close()
}

// Ensure that calls that their client has reset, and that a goroutine still works for, are bounded.
func TestServer_unfinished(t *testing.T) {
	c := dial(t)
	sent := c.flood(func(n uint32) error {
		return errors.Join(c.request(2*n+1, false, "stubborn", "1"), c.WriteData(2*n+1, false, []byte("x")),
			c.WriteRSTStream(2*n+1, http2.ErrCodeCancel))
	})
	refused := 0
	for refused < 10 {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if reset, ok := f.(*http2.RSTStreamFrame); ok && reset.ErrCode == http2.ErrCodeRefusedStream {
			refused++
		}
	}
	if n := c.echo.open.Load(); n > 2*maxStreams {
		t.Errorf("%d are under way", n)
	}
	c.conn.Close()
	<-sent
	c.echo.release()
}

// Ensure that a client that is sent much may give windows back, and ping, as often as that takes.
func TestServer_busyWatcher(t *testing.T) {
	const messages = 20_000
	c := dial(t)
	if err := c.request(1, false, "many", "20000"); err != nil {
		t.Fatal(err)
	}
	bytes, ping := 0, [8]byte{2, 4, 16, 16, 9, 14, 7, 7}
	for bytes < messages*105 {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("after %d bytes: %v", bytes, err)
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			n := len(f.Data())
			bytes += n
			if err := errors.Join(c.WriteWindowUpdate(0, uint32(n)), c.WriteWindowUpdate(1, uint32(n)),
				c.WritePing(false, ping)); err != nil {
				t.Fatal(err)
			}
		case *http2.GoAwayFrame:
			t.Fatalf("sent away after %d bytes: %v %s", bytes, f.ErrCode, f.DebugData())
		}
	}
}

// Ensure that a stream is not worked for any more once it was reset because its client broke the rules: an answer would follow
// the reset.
func TestServer_resetStreamsAreLost(t *testing.T) {
	for name, breaks := range map[string]func(c *client) error{
		"DATA behind the end": func(c *client) error {
			return errors.Join(c.request(1, true, "silent", "1"), c.WriteData(1, true, []byte("more")))
		},
		"a stream that depends on itself": func(c *client) error {
			return errors.Join(c.request(1, false, "silent", "1"), c.WritePriority(1, http2.PriorityParam{StreamDep: 1}))
		},
		"a PRIORITY of a wrong length": func(c *client) error {
			return errors.Join(c.request(1, false, "silent", "1"), c.WriteRawFrame(http2.FramePriority, 0, 1, make([]byte, 4)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t)
			if err := errors.Join(breaks(c), c.request(3, false), c.WriteData(3, true, []byte("x"))); err != nil {
				t.Fatal(err)
			}
			c.answer(3)
			if n := c.echo.lost.Load(); n != 1 {
				t.Errorf("%d were lost, want one", n)
			}
		})
	}
}
