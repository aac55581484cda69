package inproc

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// transport takes the metadata that a service answers with.
type transport struct {
	method string

	mu              sync.Mutex
	header, trailer metadata.MD
}

// contentType is in the header of every gRPC answer, and what gateways show of it.
var contentType = metadata.Pairs("content-type", "application/grpc")

// Method implements grpc.ServerTransportStream.
func (t *transport) Method() string { return t.method }

// SetHeader implements grpc.ServerTransportStream.
func (t *transport) SetHeader(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.header = metadata.Join(t.header, md)
	return nil
}

// SendHeader implements grpc.ServerTransportStream.
func (t *transport) SendHeader(md metadata.MD) error { return t.SetHeader(md) }

// SetTrailer implements grpc.ServerTransportStream.
func (t *transport) SetTrailer(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trailer = metadata.Join(t.trailer, md)
	return nil
}

func (t *transport) headers() metadata.MD {
	t.mu.Lock()
	defer t.mu.Unlock()
	return metadata.Join(contentType, t.header)
}

func (t *transport) trailers() metadata.MD {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.trailer.Copy()
}

// show gives the metadata to a caller who asked for it.
func (t *transport) show(options []grpc.CallOption) {
	for _, option := range options {
		switch o := option.(type) {
		case grpc.HeaderCallOption:
			*o.HeaderAddr = t.headers()
		case grpc.TrailerCallOption:
			*o.TrailerAddr = t.trailers()
		}
	}
}
