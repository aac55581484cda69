package wire

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/internal/kv"
)

// chunkBytes is the largest frame that gRPC sends. It is also the part of an answer whose taking counts, so that a slow line
// that many answers share brings parts of each.
const chunkBytes = 16 << 10

// chunks are used again when gRPC has sent them: without pointers, and not cleared.
var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

func reuse(chunk []byte) { chunks.Put((*[chunkBytes]byte)(chunk[:chunkBytes])) }

// accounted is a response whose memory is counted.
type accounted interface{ Account() kv.Account }

// sent is an account that wants to know how much of an answer its client has taken: *answers.Account.
type sent interface {
	Sending(bytes int) bool
	Taken()
}

// counted makes buffers of a response whose memory is counted, and releases the account when gRPC has sent the last byte, or
// drops it.
func counted(encoded []byte, account kv.Account) mem.BufferSlice {
	size := len(encoded)
	if mem.IsBelowBufferPoolingThreshold(size) {
		account.Release()
		return mem.BufferSlice{mem.SliceBuffer(encoded)}
	}
	line, ok := account.(sent)
	if !ok || !line.Sending(size) {
		return mem.BufferSlice{mem.NewBuffer(&encoded, &accountPool{account: account})}
	}
	return inParts(encoded, &accountPool{account: account, line: line})
}

// inParts makes several buffers of one.
func inParts(encoded []byte, pool *accountPool) mem.BufferSlice {
	parts := make([][]byte, max(1, len(encoded)/chunkBytes))
	pool.left.Store(int64(len(parts)) - 1)
	buffers := make(mem.BufferSlice, len(parts))
	for i := range parts {
		end := chunkBytes
		if i == len(parts)-1 {
			end = len(encoded)
		}
		parts[i], encoded = encoded[:end:end], encoded[end:]
		buffers[i] = mem.NewBuffer(&parts[i], pool)
	}
	return buffers
}

// accountPool is where the buffers of an answer go when they were sent.
type accountPool struct {
	account kv.Account   // nil: the memory is not counted
	line    sent         // nil: no caller wants to know
	left    atomic.Int64 // buffers beyond the last
	chunks  bool         // they are used again
}

// Get implements mem.BufferPool.
func (*accountPool) Get(length int) *[]byte { return mem.DefaultBufferPool().Get(length) }

// Put implements mem.BufferPool.
func (p *accountPool) Put(buffer *[]byte) {
	if p.chunks {
		reuse(*buffer)
	}
	switch {
	case p.left.Add(-1) < 0:
		release(p.account)
	case p.line != nil:
		p.line.Taken()
	}
}

func release(account kv.Account) {
	if account != nil {
		account.Release()
	}
}
