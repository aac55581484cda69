package wire

import (
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/internal/kv"
)

// copiedBytes is the size up to which an answer is copied out of its chunk into memory of its own size.
const copiedBytes = 4 << 10

// Pairs are the pairs of a RangeResponse, encoded as they are added: its fields kvs=2. They are mvcc.Rows.
//
// Writing 1,000 pairs of 256 bytes takes 16 allocations of 2.5 KB in all, and two thirds of the time in which RangeResponse
// writes pairs that were collected before (BenchmarkPairs, BenchmarkCodec_Marshal).
type Pairs struct {
	Account kv.Account // from which the memory is taken; nil: it is not counted

	full [][]byte // chunks
	last []byte   // the chunk that is being written
	size int      // of full
	head []byte   // what comes before a value that spans chunks
}

// Append implements mvcc.Rows.
func (p *Pairs) Append(pair *kv.KeyValue) error {
	size := sizeKeyValue(pair)
	if p.last == nil {
		if err := p.grow(); err != nil {
			return err
		}
	}
	if SizeMessage(size) <= cap(p.last)-len(p.last) {
		p.last = appendKeyValue(appendLength(p.last, 2, size), pair)
		return nil
	}
	lease := sizeUint(uint64(pair.Lease))
	p.head = appendKeyValueHead(appendLength(p.head[:0], 2, size), pair)
	if err := p.write(p.head); err != nil {
		return err
	}
	if err := p.write(pair.Value); err != nil || lease == 0 {
		return err
	}
	return p.write(appendUint(p.head[:0], 6, uint64(pair.Lease)))
}

// write adds bytes, in several chunks if they do not fit into the last.
func (p *Pairs) write(src []byte) error {
	for len(src) > 0 {
		if len(p.last) == cap(p.last) {
			if err := p.grow(); err != nil {
				return err
			}
		}
		n := min(len(src), cap(p.last)-len(p.last))
		p.last, src = append(p.last, src[:n]...), src[n:]
	}
	return nil
}

func (p *Pairs) grow() error {
	if p.Account != nil {
		if err := p.Account.Take(chunkBytes); err != nil {
			return err
		}
	}
	if p.last != nil {
		p.full, p.size = append(p.full, p.last), p.size+len(p.last)
	}
	p.last = chunks.Get().(*[chunkBytes]byte)[:0]
	return nil
}

// Len is the size of what was added.
func (p *Pairs) Len() int { return p.size + len(p.last) }

// Reset implements mvcc.Rows. It also gives the chunks of an answer back that is not sent.
func (p *Pairs) Reset() {
	for _, chunk := range p.full {
		reuse(chunk)
	}
	if p.last != nil {
		reuse(p.last)
	}
	p.full, p.last, p.size = nil, nil, 0
}

func (p *Pairs) appendTo(dst []byte) []byte {
	for _, chunk := range p.full {
		dst = append(dst, chunk...)
	}
	return append(dst, p.last...)
}

// chunked is a response that may have Pairs.
type chunked interface {
	Encoder
	pairs() *Pairs // nil if there are none
	appendHead(dst []byte) []byte
	appendTail(dst []byte) []byte
}

// buffers gives the encoding of r, whose pairs are p, to gRPC. The chunks go back, and their memory is free, when gRPC has sent
// them, or drops them.
func (p *Pairs) buffers(r chunked) mem.BufferSlice {
	size := r.SizeWire()
	if size <= copiedBytes {
		encoded := r.AppendWire(make([]byte, 0, size))
		p.Reset()
		release(p.Account)
		return mem.BufferSlice{mem.SliceBuffer(encoded)}
	}
	parts := append(p.full, p.last)
	pool := &accountPool{account: p.Account, chunks: true}
	pool.left.Store(int64(len(parts)) - 1)
	if line, ok := p.Account.(sent); ok && line.Sending(len(parts)*chunkBytes) {
		pool.line = line
	}
	buffers := append(make(mem.BufferSlice, 0, len(parts)+2), mem.SliceBuffer(r.appendHead(nil)))
	for i := range parts {
		buffers = append(buffers, mem.NewBuffer(&parts[i], pool))
	}
	p.full, p.last, p.size = nil, nil, 0
	return append(buffers, mem.SliceBuffer(r.appendTail(nil)))
}
