package rawcalls_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/quorate/quorate/test/bench/rawcalls"
)

// serve serves one connection after the other, and returns where.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server := http2.Server{MaxReadFrameSize: 1 << 20}
			server.ServeConn(conn, &http2.ServeConnOpts{Handler: handle, BaseConfig: &http.Server{MaxHeaderBytes: 16 << 20}})
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return listener.Addr().String()
}

func dial(t *testing.T, address string, window uint32) *rawcalls.Conn {
	t.Helper()
	c, err := rawcalls.Dial("127.0.0.1", address, false, window)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await waits until a connection has taken so many bytes, and fails if it takes more than that.
func await(t *testing.T, c *rawcalls.Conn, bytes int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for c.Took() < bytes {
		select {
		case <-ctx.Done():
			t.Fatalf("took %d bytes, want %d", c.Took(), bytes)
		case <-time.After(time.Millisecond):
		}
	}
	for range 20 { // what is too much may come later
		<-time.After(time.Millisecond)
		if took := c.Took(); took != bytes {
			t.Fatalf("took %d bytes, and was allowed %d", took, bytes)
		}
	}
}

// TestConn_Allow has two answers that are larger than their windows: the connection's ends first, and then the streams' do.
func TestConn_Allow(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a", 1<<20)) // the client leaves before its end
	})
	c := dial(t, address, 65535)
	for range 2 {
		if err := c.Send(rawcalls.Call{Path: "/", Ends: true}); err != nil {
			t.Fatal(err)
		}
	}
	await(t, c, 65535)
	for _, most := range []int64{85535, 105535} {
		if err := c.Allow(20_000); err != nil {
			t.Fatal(err)
		}
		await(t, c, most)
	}
	if err := c.Allow(1 << 20); err != nil {
		t.Fatal(err)
	}
	await(t, c, 2*65535)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestConn_ChangeWindows reads the frames: Go's server refuses so many settings.
func TestConn_ChangeWindows(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := dial(t, listener.Addr().String(), 65535)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(io.Discard, conn)
	if err := c.ChangeWindows(); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := f.(*http2.SettingsFrame)
		if !ok || settings.NumSettings() < 2 { // the first ones of Dial
			continue
		}
		if n := settings.NumSettings(); n < 2700 || settings.Setting(0) == settings.Setting(1) {
			t.Fatalf("%d settings, that begin with %v and %v", n, settings.Setting(0), settings.Setting(1))
		}
		break
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.Ended()
	_ = c.Close() // it has ended
}

// TestConn_Send_repeats has a server count the fields that each of several calls names.
func TestConn_Send_repeats(t *testing.T) {
	const repeats = 1000
	got := make(chan []string, 1)
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Values("filler") })
	c := dial(t, address, 65535)
	filler := strings.Repeat("{", 3900)
	for range 3 {
		if err := c.Send(rawcalls.Call{Path: "/", Metadata: filler, Repeats: repeats, Ends: true}); err != nil {
			t.Fatal(err)
		}
		fields := <-got
		if len(fields) != repeats+1 {
			t.Fatalf("%d fields, want %d", len(fields), repeats+1)
		}
		for _, field := range fields {
			if field != filler {
				t.Fatalf("a field of %d bytes: %.20q", len(field), field)
			}
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
