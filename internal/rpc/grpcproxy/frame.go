package grpcproxy

import (
	"errors"
	"runtime"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// freeBytes is the size below which a message is not counted of which its call has one at a time: it is among callBytes.
	freeBytes = 4 << 10
	// frameBytes is what a message takes beside its bytes that waits for a member.
	frameBytes = 512
	// readCopies is how often a message is in memory that is read for a namespace, beside what is sent.
	readCopies = 2
)

// frame is a message that is not decoded.
type frame struct{ data mem.BufferSlice }

// rawCodec passes frames on. Its name is that of the default codec, so neither side sees a difference.
type rawCodec struct{}

var errNoFrame = errors.New("grpcproxy: not a frame")

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2. gRPC frees what it is given once it is sent.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, errNoFrame
	}
	data := f.data
	f.data = nil
	return data, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return errNoFrame
	}
	data.Ref()
	f.data = data
	return nil
}

var errTooMuchHeld = status.Error(codes.ResourceExhausted, "quorate: this proxy holds too much that was not taken yet, for "+
	"this client or for all: ask for less at once, or read faster")

// hold counts a frame until gRPC has sent it to a member.
func (f *frame) hold(held *admission.Ledger, host string) error {
	leave, entered := held.Enter(host, int64(f.data.Len()+frameBytes))
	if !entered {
		f.drop()
		return errTooMuchHeld
	}
	owned := f.bytes()
	p := &place{leave: leave}
	h := &holder{p}
	runtime.AddCleanup(h, (*place).release, p) // where gRPC forgets a buffer that it did not send
	f.data = mem.BufferSlice{mem.NewBuffer(&owned, h)}
	return nil
}

// bytes takes the bytes out of a frame. A single SliceBuffer is memory that only the garbage collector takes back, and needs no
// copy.
func (f *frame) bytes() []byte {
	if len(f.data) == 1 {
		if owned, ok := f.data[0].(mem.SliceBuffer); ok {
			f.data = nil
			return owned
		}
	}
	owned := f.data.Materialize()
	f.drop()
	return owned
}

func (f *frame) drop() {
	f.data.Free()
	f.data = nil
}

// holder is where the buffer of a frame goes when it is not needed any more.
type holder struct{ place *place }

// Get implements mem.BufferPool.
func (*holder) Get(length int) *[]byte { return mem.DefaultBufferPool().Get(length) }

// Put implements mem.BufferPool.
func (h *holder) Put(*[]byte) { h.place.release() }

// place is what a frame takes of the bound.
type place struct {
	once  sync.Once
	leave func()
}

func (p *place) release() { p.once.Do(p.leave) }
