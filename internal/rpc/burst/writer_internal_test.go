package burst

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// message is a number, and so many bytes more.
type message struct {
	number uint64
	more   int
}

func (m *message) SizeWire() int { return 8 + m.more }
func (m *message) AppendWire(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, m.number), bytes.Repeat([]byte{byte(m.number)}, m.more)...)
}

// codec counts the messages that pass it.
type codec struct{ marshalled *atomic.Int64 }

func (codec) Name() string { return "test" }
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	c.marshalled.Add(1)
	return mem.BufferSlice{mem.SliceBuffer(v.(*message).AppendWire(nil))}, nil
}
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	all, m := data.Materialize(), v.(*message)
	m.number, m.more = binary.BigEndian.Uint64(all), len(all)-8
	if !bytes.Equal(all[8:], bytes.Repeat([]byte{byte(m.number)}, m.more)) {
		return fmt.Errorf("message %d is not as it was sent", m.number)
	}
	return nil
}

// passing is a stream that lets messages pass until it has refused.
type passing struct {
	grpc.ServerStream
	passed  int
	refuses error
}

func (p *passing) Pass(messages int) error {
	p.passed += messages
	return p.refuses
}

// open starts a server whose streams are served by serve, and opens one.
func open(
	t *testing.T, marshalled *atomic.Int64, serve func(grpc.ServerStream) error, options ...grpc.CallOption,
) grpc.ClientStream {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec{marshalled}))
	desc := grpc.StreamDesc{
		StreamName: "stream", Handler: func(_ any, s grpc.ServerStream) error { return serve(s) }, ServerStreams: true,
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "burst", Streams: []grpc.StreamDesc{desc}}, nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := grpc.NewClient("passthrough:///burst", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	options = append(options, grpc.ForceCodecV2(codec{new(atomic.Int64)}))
	stream, err := conn.NewStream(t.Context(), &desc, "/burst/stream", options...)
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// sizes are of messages: many small ones, those around the limits, and large ones in between.
func sizes() (list []int) {
	for i := range 3_000 {
		size := i % 300
		switch {
		case i%97 == 0:
			size = smallBytes - 8 + i%2
		case i%499 == 0:
			size = 3*chunkBytes + i
		}
		list = append(list, size)
	}
	return list
}

// Ensure that what is sent arrives, each message once and in order, and that small ones are written together. This test fails
// where a new version of grpc-go has a transport of another shape: messages then go one by one, which costs several times
// as much.
func TestWriter_Send(t *testing.T) {
	for name, c := range map[string]struct {
		options []grpc.CallOption
		bursts  bool
	}{
		"plain":        {nil, true},
		"a compressor": {[]grpc.CallOption{grpc.UseCompressor(gzip.Name)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := sizes()
			var marshalled atomic.Int64
			var sent atomic.Uint64
			var passed int
			served := make(chan struct{})
			stream := open(t, &marshalled, func(s grpc.ServerStream) error {
				defer close(served)
				through := &passing{ServerStream: s}
				w := New(through, &sent)
				defer w.Close()
				for i, size := range all {
					if err := w.Send(&message{uint64(i), size}); err != nil {
						return err
					}
					if i%1_000 == 0 {
						if err := w.Flush(); err != nil {
							return err
						}
					}
				}
				err := w.Flush()
				passed = through.passed
				return err
			}, c.options...)
			for i, size := range all {
				var m message
				if err := stream.RecvMsg(&m); err != nil || m.number != uint64(i) || m.more != size {
					t.Fatalf("message %d: got %+v, %v; want %d bytes more", i, m, err, size)
				}
			}
			<-served
			large, small, bytes := 0, 0, 0
			for _, size := range all {
				if size+8 > smallBytes {
					large++
				} else {
					small, bytes = small+1, bytes+size+8
				}
			}
			if !c.bursts {
				large, small, bytes = len(all), 0, 0
			}
			if int(marshalled.Load()) != large || passed != small || sent.Load() != uint64(bytes) {
				t.Errorf("%d messages were sent alone, %d together with %d bytes; want %d, %d and %d",
					marshalled.Load(), passed, sent.Load(), large, small, bytes)
			}
		})
	}
}

// Ensure that a client that does not read makes the writer wait.
func TestWriter_Send_unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		stream := open(t, new(atomic.Int64), func(s grpc.ServerStream) error {
			w := New(&passing{ServerStream: s}, new(atomic.Uint64))
			defer w.Close()
			for i := range uint64(10_000) {
				if err := errors.Join(w.Send(&message{i, 1000}), w.Flush()); err != nil {
					return err
				}
				written.Add(1)
			}
			return nil
		})
		synctest.Wait()
		// The client's window and the transport's quota are 64 KiB each.
		if n := written.Load(); n < 60 || n > 200 {
			t.Errorf("%d messages of a kilobyte were written to a client that reads nothing", n)
		}
		var m message
		if err := stream.RecvMsg(&m); err != nil || m.number != 0 {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// Ensure that what may not pass is not written.
func TestWriter_Flush_refused(t *testing.T) {
	refusal := status.Error(codes.PermissionDenied, "not any more")
	var marshalled atomic.Int64
	stream := open(t, &marshalled, func(s grpc.ServerStream) error {
		through := &passing{ServerStream: s}
		w := New(through, new(atomic.Uint64))
		defer w.Close()
		err := errors.Join(w.Send(&message{1, 10}), w.Flush())
		through.refuses = refusal
		return errors.Join(err, w.Send(&message{2, 10}), w.Flush())
	})
	var m message
	if err := stream.RecvMsg(&m); err != nil || m.number != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := stream.RecvMsg(&m); status.Code(err) != codes.Unknown && status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %+v, %v", m, err)
	}
}

// Ensure that a stream which is no connection's is sent its messages one by one.
func TestNew_withoutTransport(t *testing.T) {
	w := New(&passing{ServerStream: recorder{t: t}}, new(atomic.Uint64))
	if w.transport != nil {
		t.Fatal("found a transport")
	}
	if err := errors.Join(w.Send(&message{7, 0}), w.Flush()); err != nil {
		t.Fatal(err)
	}
}

type recorder struct {
	grpc.ServerStream
	t *testing.T
}

func (r recorder) Context() context.Context { return r.t.Context() }
func (r recorder) SendMsg(m any) error {
	if got := m.(*message).number; got != 7 {
		r.t.Errorf("message %d was sent", got)
	}
	return nil
}

// taker is a transport that says when the client has taken what was sent.
type taker struct {
	grpc.ServerTransportStream
	waited int
}

func (t *taker) WaitSent() { t.waited++ }

// taking is a stream on a taker.
type taking struct {
	grpc.ServerStream
	transport *taker
	sent      int
}

func (s *taking) Context() context.Context {
	return grpc.NewContextWithServerTransportStream(context.Background(), s.transport)
}
func (s *taking) SendMsg(any) error { s.sent++; return nil }

// Ensure that a large message is waited for until the client has taken it, and that others are not.
func TestWriter_Send_largeIsTaken(t *testing.T) {
	stream := &taking{transport: &taker{}}
	w := New(stream, new(atomic.Uint64))
	for i, row := range []struct{ size, waited int }{{100, 0}, {smallBytes + 1, 0}, {largeBytes, 1}, {100, 1}} {
		if err := w.Send(&message{more: row.size}); err != nil {
			t.Fatal(err)
		}
		if stream.sent != i+1 || stream.transport.waited != row.waited {
			t.Errorf("after a message of %d bytes: %d sent, waited for %d, want %d", row.size, stream.sent, stream.transport.waited,
				row.waited)
		}
	}
}
