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

// Counted reports whether the memory of a response is counted until it was sent: small ones are not.
func (Codec) Counted(v any) bool {
	account := kv.Account(nil)
	switch v := v.(type) {
	case *Counted:
		account = v.Memory
	case accounted:
		account = v.Account()
	}
	large, ok := account.(interface{ Counted() bool })
	return ok && large.Counted()
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

// PartBytes is about what a decoded message takes beside its strings.
func (Codec) PartBytes(encoded []byte, decoded any) int {
	switch v := decoded.(type) {
	case interface{ PartBytes() int }:
		return v.PartBytes()
	case proto.Message:
		return partBytes * countParts(encoded, v)
	}
	return 0
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
