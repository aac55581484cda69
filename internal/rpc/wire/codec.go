package wire

import (
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// Codec is the gRPC codec of our servers. Requests and responses that know their own encoding bypass the protobuf
// library; all others pass through it. Its name is that of the default codec, so clients see no difference.
type Codec struct{ Received, Sent *atomic.Uint64 } // bytes of messages

// Name implements encoding.CodecV2.
func (Codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, err := encode(v)
	if err == nil {
		c.Sent.Add(uint64(encoded.Len()))
	}
	return encoded, err
}

func encode(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *WatchResponse:
		return v.buffers(), nil
	case Encoder:
		if r, ok := v.(chunked); ok && r.pairs() != nil {
			return r.pairs().buffers(r), nil
		}
		size := v.SizeWire()
		if r, ok := v.(accounted); ok && r.Account() != nil {
			return counted(v.AppendWire(make([]byte, 0, size)), r.Account()), nil
		}
		if mem.IsBelowBufferPoolingThreshold(size) {
			return mem.BufferSlice{mem.SliceBuffer(v.AppendWire(make([]byte, 0, size)))}, nil
		}
		pool := mem.DefaultBufferPool()
		buffer := pool.Get(size)
		*buffer = v.AppendWire((*buffer)[:0])
		return mem.BufferSlice{mem.NewBuffer(buffer, pool)}, nil
	case *Counted:
		encoded, err := proto.Marshal(v.Message)
		if err != nil {
			v.Memory.Release()
			return nil, fmt.Errorf("rpc: marshal %T: %w", v.Message, err)
		}
		return counted(encoded, v.Memory), nil
	case proto.Message:
		encoded, err := proto.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("rpc: marshal %T: %w", v, err)
		}
		return mem.BufferSlice{mem.SliceBuffer(encoded)}, nil
	}
	return nil, fmt.Errorf("rpc: cannot marshal %T", v)
}

// Counted is a protobuf message whose memory is counted.
type Counted struct {
	Message proto.Message
	Memory  kv.Account
}

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
	line    sent         // nil: nobody wants to know
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

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	c.Received.Add(uint64(data.Len()))
	switch v := v.(type) {
	case Decoder:
		return v.DecodeWire(ownedBytes(data))
	case proto.Message:
		buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer buffer.Free()
		if err := CheckParts(buffer.ReadOnlyData(), v); err != nil {
			return err
		}
		return proto.Unmarshal(buffer.ReadOnlyData(), v)
	}
	return fmt.Errorf("rpc: cannot unmarshal %T", v)
}

// ownedBytes gives the bytes of data such that they stay as they are after data was freed: requests alias them. A
// single SliceBuffer is memory that only the garbage collector takes back, so it needs no copy; pooled buffers do.
func ownedBytes(data mem.BufferSlice) []byte {
	if len(data) == 1 {
		if owned, ok := data[0].(mem.SliceBuffer); ok {
			return owned
		}
	}
	return data.Materialize()
}
