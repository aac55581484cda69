package front

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/rpc/h2"
)

// transport is a grpc.ServerTransportStream: it takes the metadata that a service answers with.
type transport struct {
	method  string
	request *request
	send    func(header []byte) // sends the header early; nil: it waits for the answer
	framed  func(messages mem.BufferSlice) error
	// waitSent waits until the client has taken nearly all; nil where there is one answer only.
	waitSent func()
	abandon  func() // ends a stream whose client does not read; nil where there is one answer only

	mu          sync.Mutex
	md, trailer metadata.MD
	begun       bool // the header was made
	compression string
}

var errBegun = status.Error(codes.Internal, "transport: the header was sent before")

// Method implements grpc.ServerTransportStream.
func (t *transport) Method() string { return t.method }

// SetHeader implements grpc.ServerTransportStream.
func (t *transport) SetHeader(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		return errBegun
	}
	t.md = metadata.Join(t.md, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream.
func (t *transport) SendHeader(md metadata.MD) error {
	if err := t.SetHeader(md); err != nil || t.send == nil {
		return err
	}
	t.send(t.header())
	return nil
}

// SetTrailer implements grpc.ServerTransportStream.
func (t *transport) SetTrailer(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trailer = metadata.Join(t.trailer, md)
	return nil
}

// SetSendCompress says how answers are compressed, as the method of this name of grpc-go's stream.
func (t *transport) SetSendCompress(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		return errBegun
	}
	t.compression = name
	return nil
}

// SendCompress is how answers are compressed, and SendFramed sends messages that have their prefixes: for package rpc/burst.
func (t *transport) SendCompress() string { return t.compressor() }

// SendFramed is for streams only.
func (t *transport) SendFramed(messages mem.BufferSlice) error { return t.framed(messages) }

// compressor is how answers are compressed.
func (t *transport) compressor() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.compression
}

// WaitSent waits until the client has taken nearly all that was sent, or the stream has ended.
func (t *transport) WaitSent() {
	if t.waitSent != nil {
		t.waitSent()
	}
}

// Abandon ends the stream because its client does not read: the goroutine that sends goes on.
func (t *transport) Abandon() {
	if t.abandon != nil {
		t.abandon()
	}
}

// header makes the block of the header, once: then it is empty.
func (t *transport) header() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun {
		return nil
	}
	t.begun = true
	contentType := "application/grpc"
	if t.request.subtype != "" {
		contentType += "+" + t.request.subtype
	}
	block := make([]byte, 0, 64)
	block = h2.AppendField(h2.AppendStatus(block, 200), "content-type", contentType)
	if t.compression != "" && t.compression != encoding.Identity {
		block = h2.AppendField(block, "grpc-encoding", t.compression)
	}
	return appendMetadata(block, t.md)
}

// trailers makes the block that ends the call; nil: it succeeded. Without a header before, it holds that, too.
func (t *transport) trailers(why *status.Status) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	block := make([]byte, 0, 64)
	if !t.begun {
		t.begun = true
		block = h2.AppendField(h2.AppendStatus(block, 200), "content-type", "application/grpc")
		block = appendMetadata(block, t.md)
	}
	return appendMetadata(appendStatus(block, why), t.trailer)
}
