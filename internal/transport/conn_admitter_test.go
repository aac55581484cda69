package transport_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/transport"
)

// guarded is a listener that counts the streams of members.
type guarded struct {
	net.Listener
	admitted, left, held atomic.Int64
}

type guardedConn struct {
	net.Conn
	by *guarded
}

type guardedAddr struct {
	net.Addr
	by *guarded
}

func (g *guarded) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return guardedConn{conn, g}, nil
}

func (c guardedConn) RemoteAddr() net.Addr { return guardedAddr{c.Conn.RemoteAddr(), c.by} }

func (a guardedAddr) Admit() (leave func()) {
	a.by.admitted.Add(1)
	return func() { a.by.left.Add(1) }
}

func (a guardedAddr) Hold(more int64) { a.by.held.Add(more) }

// Ensure that the listener is told of members that said who they are, also where messages are delayed, and of no other process.
func TestTransport_admitter(t *testing.T) {
	for name, delay := range map[string]func(consensus.Member) time.Duration{
		"near": nil, "far": func(consensus.Member) time.Duration { return time.Microsecond },
	} {
		t.Run(name, func(t *testing.T) {
			listener := &guarded{}
			a := start(t, 1, func(o *transport.Options) {
				listener.Listener = o.Listeners[0]
				o.Listeners, o.Delay = []net.Listener{listener}, delay
			})
			if _, err := a.CallURL(t.Context(), a.url, "unheard of", nil, mostAnswer); err == nil {
				t.Error("a call of an unknown method was answered")
			}
			if n := listener.admitted.Load(); n != 0 {
				t.Errorf("%d non-members were admitted", n)
			}
			b := start(t, 2)
			acquaint(a, b)
			if n := listener.admitted.Load(); n != 2 {
				t.Errorf("%d streams of a member were admitted, want 2", n)
			}
			_ = b.Close()
			_ = a.Close()
			if n := listener.left.Load(); n != 2 {
				t.Errorf("%d streams left, want 2", n)
			}
		})
	}
}

// Ensure that the listener is told of a member whose stream is older than the configuration that names it.
func TestTransport_admitter_namedLater(t *testing.T) {
	listener := &guarded{}
	a := start(t, 1, func(o *transport.Options) {
		listener.Listener = o.Listeners[0]
		o.Listeners = []net.Listener{listener}
	})
	b := start(t, 2)
	b.SetPeers([]consensus.Member{{ID: 1, PeerURLs: []string{a.url}}})
	b.waitFor(1)
	b.Send([]consensus.Message{appendMessage(2, 1, 7, 1)})
	if a.next(); listener.admitted.Load() != 0 {
		t.Error("a process that is in no configuration was admitted")
	}
	a.SetPeers([]consensus.Member{{ID: 2, PeerURLs: []string{b.url}}})
	for late := time.Now().Add(patience); listener.admitted.Load() == 0; <-time.After(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("it was not admitted although the configuration names it now")
		}
		b.Send([]consensus.Message{appendMessage(2, 1, 8, 1)})
		a.next()
	}
}

// Ensure that what a connection holds is counted until it is taken: whole messages of a member, its streams, and its calls.
func TestTransport_admitter_holds(t *testing.T) {
	listener := &guarded{}
	a := start(t, 1, func(o *transport.Options) {
		listener.Listener = o.Listeners[0]
		o.Listeners = []net.Listener{listener}
	})
	a.call = func(context.Context, string, []byte) ([]byte, error) { return nil, nil }
	b := start(t, 2)
	acquaint(a, b)
	b.Send([]consensus.Message{appendMessage(2, 1, 7, 1<<20)})
	if m := a.next(); m.Kind != consensus.MsgAppend {
		t.Errorf("got %v", m.Kind)
	}
	b.Send([]consensus.Message{appendMessage(2, 1, 7, 1<<20)})
	if m := a.next(); m.Kind != consensus.MsgAppend {
		t.Errorf("got %v", m.Kind)
	}
	for range 10 {
		if _, err := b.Call(t.Context(), 1, "echo", make([]byte, 100_000), mostAnswer); err != nil {
			t.Fatal(err)
		}
	}
	const least, most = 2 * 40 << 10, 2 * 48 << 10 // what is left: the two streams of the member, their headers, an answer to a ping
	for late := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		held := listener.held.Load()
		if held >= least && held <= most {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("%d bytes are counted when all has arrived, want %d to %d", held, least, most)
		}
	}
}

// Ensure that a member takes no message that gRPC has packed: a few bytes could become a frame of the largest size.
func TestTransport_packedByGRPC(t *testing.T) {
	a := start(t, 1)
	conn, err := grpc.NewClient("passthrough:///"+a.url[len("http://"):], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, method := range []string{"Messages", "Snapshot", "Call"} {
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/quorate.Peer/"+method,
			grpc.UseCompressor(gzip.Name))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(wrapperspb.Bytes(make([]byte, 1<<20))); err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(new(any)); err == nil || !strings.Contains(err.Error(), "compression") {
			t.Errorf("%s: got %v", method, err)
		}
	}
}

// Ensure that a connection without streams is ended although it answers pings, and that members stay connected.
func TestTransport_idleAnonymous(t *testing.T) {
	a := start(t, 1, func(o *transport.Options) { o.Times.IdleAfter = 50 * time.Millisecond })
	b := start(t, 2)
	acquaint(a, b)
	before, _ := b.ConnectedSince(1)
	nonMember, err := grpc.NewClient("passthrough:///"+a.url[len("http://"):],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer nonMember.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nonMember.Connect()
	for state := nonMember.GetState(); state != connectivity.Ready; state = nonMember.GetState() {
		if !nonMember.WaitForStateChange(ctx, state) {
			t.Fatal("no connection")
		}
	}
	if !nonMember.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal("the connection is still open")
	}
	if since, up := b.ConnectedSince(1); !up || since != before {
		t.Error("a member was disconnected too")
	}
}
