package front

import (
	"math"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// Ensure that a request which comes byte by byte takes no more memory than one in large frames (GHSA-vp52-pcj8-j9qc: there each
// frame of DATA that a call had not read yet took some fifty bytes beside its own).
func TestServerStream_Receive_singleBytes(t *testing.T) {
	const frames = 40_000
	streams := make(chan *serverStream, 1)
	c := serve(t, func(o *Options) {
		o.Stream = func(_ any, s grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			streams <- s.(*serverStream)
			<-s.Context().Done() // it reads nothing
			return nil
		}
	})
	c.call(1, "/t.S/Both")
	x := <-streams
	for n := range frames {
		c.must(c.WriteData(1, false, []byte{byte(n)}))
		if n%1000 == 0 {
			c.read()
		}
	}
	c.read()
	x.queue.Lock()
	kept, memory := len(x.received), cap(x.received)
	x.queue.Unlock()
	if kept != frames || memory > 2*frames {
		t.Errorf("%d bytes of %d are kept, in %d bytes of memory", kept, frames, memory)
	}
}

// Ensure that the same holds for the only message of a call, and that its memory is not copied with each byte.
func TestAssembler_take_singleBytes(t *testing.T) {
	const size = 100_000
	a := assembler{most: size}
	message := append(h2.AppendPrefix(nil, size), strings.Repeat("x", size)...)
	grown, kept := 0, 0
	for i := range message {
		got, _, done, err := a.take(message[i : i+1])
		if err != nil || done != (i == len(message)-1) || done && len(got) != size {
			t.Fatalf("byte %d: got %d bytes, %v, %v", i, len(got), done, err)
		}
		if a.kept() > kept {
			grown++
		}
		if kept = max(kept, a.kept()); kept > 2*max(1, i+1-h2.PrefixBytes) {
			t.Fatalf("%d bytes are kept after %d", kept, i+1)
		}
	}
	if grown == 0 || grown > 30 {
		t.Errorf("it grew %d times", grown)
	}
}

// Ensure that a request that names no host is refused before anything looks at its metadata (GHSA-2v4p-qf9q-27wj: code behind the
// transport that relies on a name panicked), and that a name in the field host does.
func TestServer_noAuthority(t *testing.T) {
	asked := make(chan metadata.MD, 10)
	c := serve(t, func(o *Options) {
		o.Stream = func(_ any, s grpc.ServerStream, _ *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			md, _ := metadata.FromIncomingContext(s.Context())
			asked <- md
			return nil
		}
	})
	call := func(id uint32, path string, more ...string) {
		var block []byte
		fields := append([]string{":method", "POST", ":scheme", "http", ":path", path}, more...)
		fields = append(fields, "content-type", "application/grpc", "te", "trailers")
		for i := 0; i < len(fields); i += 2 {
			block = h2.AppendField(block, fields[i], fields[i+1])
		}
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
	}
	for i, path := range []string{"/t.S/Echo", "/t.S/Both", "/t.S/None", "foo"} {
		id := uint32(2*i + 1)
		call(id, path)
		if got := c.status(id); got != "13" {
			t.Errorf("%s without a name: got status %s, want Internal", path, got)
		}
	}
	if len(asked) > 0 {
		t.Error("a service was asked without a name")
	}
	call(9, "/t.S/Both", "host", "named")
	if got := c.status(9); got != "0" {
		t.Errorf("with a name in host: got status %s", got)
	}
	if md := <-asked; len(md.Get(":authority")) != 1 || md.Get(":authority")[0] != "named" || len(md.Get("host")) != 0 {
		t.Errorf("with a name in host: the service saw %v", md)
	}
}

// Ensure that the largest number of streams is a number like any other (net/http takes one above 2^31-1 for none, and allows 250, which
// etcd 3.7.3 has to prevent).
func TestServer_mostStreams(t *testing.T) {
	const open = 600
	c := serve(t, func(o *Options) { o.HTTP2.MaxStreams = math.MaxUint32 })
	for said := false; !said; {
		f, err := c.ReadFrame()
		c.must(err)
		if s, ok := f.(*http2.SettingsFrame); ok && !s.IsAck() {
			said = true
			if n, ok := s.Value(http2.SettingMaxConcurrentStreams); !ok || n != math.MaxUint32 {
				t.Errorf("the server says that it allows %d streams, %v", n, ok)
			}
		}
	}
	for n := range uint32(open) {
		c.call(2*n+1, "/t.S/Both")
	}
	c.call(2*open+1, "/t.S/Echo")
	c.send(2*open+1, true, "x")
	if got := c.status(2*open + 1); got != "0" {
		t.Errorf("a call beside %d streams: got status %s", open, got)
	}
}
