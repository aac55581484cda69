package transport_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/transport"
)

// deafPeer connects to a member by hand, and lets nothing in on its streams. The block is the headers of a stream of a method.
func deafPeer(t *testing.T, m *member, method, header string) (framer *http2.Framer, conn net.Conn, block []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", m.url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	framer = http2.NewFramer(conn, nil)
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/quorate.Peer/" + method},
		{":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"}, {"x", header}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: true})
	}
	return framer, conn, fields.Bytes()
}

// Ensure that calls whose answers the caller does not let in count for as long as they are open, with their headers and answers,
// though their handlers have ended; that they count no more when the answers have left, or the caller resets them.
func TestTransport_Call_unreadCounts(t *testing.T) {
	const calls, header, answer = 50, 10_000, 20_000
	listener := &guarded{}
	a := start(t, 1, func(o *transport.Options) {
		listener.Listener = o.Listeners[0]
		o.Listeners, o.OpenMethods = []net.Listener{listener}, []string{"open"}
	})
	answered := make(chan struct{}, 2*calls)
	a.call = func(context.Context, string, []byte) ([]byte, error) {
		defer func() { answered <- struct{}{} }()
		return make([]byte, answer), nil
	}
	framer, _, block := deafPeer(t, a, "Call", strings.Repeat("~", header))
	asked := transport.CallMessageForTesting(identity.Claim{Cluster: cluster}, "open")
	await := func(what string, fits func(held int64) bool) {
		t.Helper()
		for late := time.Now().Add(patience); !fits(listener.held.Load()); <-time.After(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: %d bytes are counted", what, listener.held.Load())
			}
		}
	}
	for i, end := range []func(stream uint32) error{
		func(stream uint32) error { return framer.WriteWindowUpdate(stream, 1<<20) },
		func(stream uint32) error { return framer.WriteRSTStream(stream, http2.ErrCodeCancel) },
	} {
		first := uint32(1 + 2*i*calls)
		for n := range uint32(calls) {
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: first + 2*n, BlockFragment: block, EndHeaders: true})
			if err := framer.WriteData(first+2*n, true, asked); err != nil {
				t.Fatal(err)
			}
		}
		for range calls {
			receive(t, answered, "an answer")
		}
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); <-time.After(time.Millisecond) {
			if held := listener.held.Load(); held < calls*(header+answer) {
				t.Fatalf("%d bytes are counted of %d calls that have not left", held, calls)
			}
		}
		await("their handlers have ended", func(held int64) bool { return held < calls*(32<<10+4*header+answer) })
		_ = framer.WriteWindowUpdate(0, 1<<25)
		for n := range uint32(calls) {
			if err := end(first + 2*n); err != nil {
				t.Fatal(err)
			}
		}
		await("all have left", func(held int64) bool { return held == 0 })
	}
}

// Ensure that what waits for a stream that no process reads, in the name of no member, counts until it is sent, or the stream
// ends.
func TestTransport_Send_unreadCounts(t *testing.T) {
	const streams, messages = 5, 1000
	listener := &guarded{}
	a := start(t, 1, func(o *transport.Options) {
		listener.Listener = o.Listeners[0]
		o.Listeners = []net.Listener{listener}
	})
	framer, conn, block := deafPeer(t, a, "Messages", "")
	for n := range uint32(streams) {
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1 + 2*n, BlockFragment: block, EndHeaders: true})
		if err := framer.WriteData(1+2*n, false, transport.HelloMessageForTesting(identity.Claim{Cluster: cluster,
			Member: consensus.MemberID(100 + n)}, 1)); err != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, fits func(held int64) bool) {
		t.Helper()
		for late := time.Now().Add(patience); !fits(listener.held.Load()); <-time.After(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: %d bytes are counted", what, listener.held.Load())
			}
		}
	}
	for n := range consensus.MemberID(streams) {
		for sent := 0; sent < messages; { // until its stream is open, they are dropped
			dropped := a.Stats().Dropped
			a.Send([]consensus.Message{{Kind: consensus.MsgAppend, From: 1, To: 100 + n, Term: 3,
				Entries: []consensus.Entry{{Index: 1, Term: 1, Kind: consensus.EntryCommand, Payload: make([]byte, 2000)}}}})
			if a.Stats().Dropped == dropped {
				sent++
			}
		}
	}
	await("they wait", func(held int64) bool { return held > streams*messages*2000 })
	_ = conn.Close()
	await("the streams have ended", func(held int64) bool { return held == 0 })
}
