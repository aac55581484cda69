package burst

import (
	"encoding/binary"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

const (
	// prefixBytes is the length of a message's prefix: whether it is compressed, and how long it is.
	prefixBytes = 5
	// chunkBytes is written at once: as much as a connection of ours writes to its socket at once.
	chunkBytes = 32 << 10
	// smallBytes is the size up to which a message is put behind others. A larger one costs less if it is not copied.
	smallBytes = 4 << 10
	// largeBytes is the size from which a message is waited for until the client has taken nearly all of it, so that what the
	// stream is counted for is not given back before. A transport keeps a message of any size otherwise.
	largeBytes = 64 << 10
)

// Message is what a Writer sends. It is also what the stream's codec encodes.
type Message interface {
	// SizeWire is the exact length of what AppendWire appends.
	SizeWire() int
	AppendWire(dst []byte) []byte
}

// passes is a stream that must permit what does not go through its SendMsg.
type passes interface {
	// Pass is called before so many messages are written.
	Pass(messages int) error
}

// waits is a transport that says when the client has taken nearly all that was sent: that of package rpc/front.
type waits interface{ WaitSent() }

// Writer sends messages to a stream. Its user calls Flush before it waits for anything else.
type Writer struct {
	stream    grpc.ServerStream
	passes    passes
	transport *transport // nil: messages are sent one by one
	waits     waits      // nil: the transport cannot say when a message was taken
	sent      *atomic.Uint64

	chunk    *[]byte
	messages int // in chunk
}

// New returns a writer for a stream. sent counts the bytes of messages that do not pass the stream's codec.
func New(stream grpc.ServerStream, sent *atomic.Uint64) *Writer {
	w := &Writer{stream: stream, sent: sent}
	if passes, ok := stream.(passes); ok {
		w.passes, w.transport = passes, transportOf(stream.Context())
	}
	w.waits, _ = grpc.ServerTransportStreamFromContext(stream.Context()).(waits)
	return w
}

// Send sends a message, which may be reused afterwards, at once or with those that follow.
func (w *Writer) Send(m Message) error {
	size := m.SizeWire()
	if w.transport == nil || size > smallBytes {
		if err := w.Flush(); err != nil {
			return err
		}
		return w.sendAlone(m, size)
	}
	if w.chunk != nil && len(*w.chunk)+prefixBytes+size > chunkBytes {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if w.chunk == nil {
		w.chunk = mem.DefaultBufferPool().Get(chunkBytes)
		*w.chunk = (*w.chunk)[:0]
	}
	chunk := append(*w.chunk, 0) // not compressed
	chunk = binary.BigEndian.AppendUint32(chunk, uint32(size))
	*w.chunk = m.AppendWire(chunk)
	w.messages++
	return nil
}

// sendAlone sends a message by itself.
func (w *Writer) sendAlone(m Message, size int) error {
	err := w.stream.SendMsg(m)
	if err == nil && size > largeBytes && w.waits != nil {
		w.waits.WaitSent()
	}
	return err
}

// Flush writes what was sent and is not written yet.
func (w *Writer) Flush() error {
	if w.chunk == nil {
		return nil
	}
	chunk, messages := w.chunk, w.messages
	w.chunk, w.messages = nil, 0
	pool := mem.DefaultBufferPool()
	if err := w.passes.Pass(messages); err != nil {
		pool.Put(chunk)
		return err
	}
	w.sent.Add(uint64(len(*chunk) - messages*prefixBytes))
	err := w.transport.send(mem.BufferSlice{fitting(chunk, pool)})
	switch _, known := status.FromError(err); {
	case err == nil, known:
		return err
	case w.stream.Context().Err() != nil:
		return status.FromContextError(w.stream.Context().Err()).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// fitting makes a buffer of a chunk. It may be long until the client takes it, so little does not keep a whole chunk.
func fitting(chunk *[]byte, pool mem.BufferPool) mem.Buffer {
	if 2*len(*chunk) >= chunkBytes {
		return mem.NewBuffer(chunk, pool)
	}
	defer pool.Put(chunk)
	return mem.Copy(*chunk, pool)
}

// Close gives back what was not written.
func (w *Writer) Close() {
	if w.chunk != nil {
		mem.DefaultBufferPool().Put(w.chunk)
		w.chunk, w.messages = nil, 0
	}
}
