package transport

import (
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// outFrame is a frame on its way out. A pooled buffer goes back to framePool once gRPC has written it.
type outFrame struct {
	pooled *[]byte
	plain  []byte
}

// inFrame is a frame that arrived. If reuse is set, its memory is used again for the next frame; otherwise every
// frame gets memory of its own, because entries alias it for as long as the log holds them.
type inFrame struct {
	bytes []byte
	reuse bool
}

// rawCodec hands frames to gRPC as they are.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "quorate-frames" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	frame, ok := v.(*outFrame)
	if !ok {
		return nil, fmt.Errorf("transport: cannot send a %T", v)
	}
	if frame.pooled != nil {
		return mem.BufferSlice{mem.NewBuffer(frame.pooled, framePool)}, nil
	}
	return mem.BufferSlice{mem.SliceBuffer(frame.plain)}, nil
}

func (rawCodec) Unmarshal(src mem.BufferSlice, v any) error {
	frame, ok := v.(*inFrame)
	if !ok {
		return fmt.Errorf("transport: cannot receive into a %T", v)
	}
	if size := src.Len(); frame.reuse && cap(frame.bytes) >= size {
		frame.bytes = frame.bytes[:size]
		src.CopyTo(frame.bytes)
		return nil
	}
	if len(src) == 1 {
		// The usual case. Appending spares the zeroing of memory that is overwritten anyway.
		frame.bytes = append([]byte(nil), src[0].ReadOnlyData()...)
		return nil
	}
	frame.bytes = src.Materialize()
	return nil
}

// noCompression refuses messages that gRPC has compressed: a few bytes could become the largest frame. Members compress their
// frames themselves.
type noCompression struct{}

func (noCompression) Type() string { return "gzip" } // the one that this program has

func (noCompression) Do(io.Reader) ([]byte, error) {
	return nil, status.Error(codes.Unimplemented, "transport: members do not use gRPC's compression")
}

// framePool holds the buffers that frames are encoded into.
var framePool = &bufferPool{pool: sync.Pool{New: func() any {
	b := make([]byte, 0, minBufferBytes)
	return &b
}}}

const (
	// minBufferBytes is above gRPC's own threshold, under which it would not give a buffer back.
	minBufferBytes = 4 << 10
	// maxPooledBytes keeps one huge entry from pinning its buffer.
	maxPooledBytes = 2 * softFrameBytes
)

type bufferPool struct{ pool sync.Pool }

var _ mem.BufferPool = (*bufferPool)(nil)

// Get returns a buffer of the given length.
func (p *bufferPool) Get(length int) *[]byte {
	b := p.pool.Get().(*[]byte)
	if cap(*b) < length {
		*b = make([]byte, length)
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (p *bufferPool) Put(b *[]byte) {
	if cap(*b) > maxPooledBytes || cap(*b) < minBufferBytes {
		return
	}
	p.pool.Put(b)
}
