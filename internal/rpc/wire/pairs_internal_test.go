package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// pairsResponse is response for ranges whose pairs are encoded as they come, small and large.
func (r requests) pairsResponse(h Header) (Encoder, proto.Message) {
	ours := RangeResponse{Header: h, Headless: r.bool(), Result: kv.RangeResult{More: r.bool(), Count: r.number()}}
	m := &pb.RangeResponse{More: ours.Result.More, Count: ours.Result.Count}
	if !ours.Headless {
		m.Header = headerOf(h)
	}
	for range r.IntN(40) {
		pair := r.keyValue()
		if r.IntN(4) == 0 {
			pair.Value = bytes.Repeat([]byte("v"), r.IntN(2*chunkBytes))
		}
		if r.IntN(40) == 0 {
			pair.Key = bytes.Repeat([]byte("k"), r.IntN(2*chunkBytes))
		}
		m.Kvs = append(m.Kvs, keyValueOf(&pair))
		if err := ours.Pairs.Append(&pair); err != nil {
			panic(err)
		}
	}
	if r.bool() {
		return &ours, m
	}
	return &RangeChunk{Response: ours}, &pb.RangeStreamResponse{RangeResponse: m}
}

// meter is an account with a limit that wants to know what was taken.
type meter struct {
	most, used, sending, taken, released int
}

var errMeter = errors.New("too much")

func (m *meter) Take(n int) error {
	if m.used += n; m.used > m.most {
		return errMeter
	}
	return nil
}
func (m *meter) Walk(int) error         { return nil }
func (m *meter) Release()               { m.released++ }
func (m *meter) Sending(bytes int) bool { m.sending = bytes; return true }
func (m *meter) Taken()                 { m.taken++ }

// Ensure that a response counts what it takes before it takes it, until gRPC has sent the last chunk.
func TestPairs_account(t *testing.T) {
	pair := kv.KeyValue{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), chunkBytes-100), ModRevision: 7}
	for _, tc := range []struct{ pairs, chunks int }{{1, 1}, {2, 2}, {10, 10}} {
		m := &meter{most: tc.chunks * chunkBytes}
		r := &RangeResponse{Pairs: Pairs{Account: m}}
		for range tc.pairs {
			if err := r.Pairs.Append(&pair); err != nil {
				t.Fatal(err)
			}
		}
		buffers, err := newCodec().Marshal(r)
		if err != nil || m.used != tc.chunks*chunkBytes || m.sending != m.used {
			t.Errorf("%d pairs: %v, %+v", tc.pairs, err, m)
		}
		for i, b := range buffers {
			if m.released != 0 && i < len(buffers)-1 { // the last one is what follows the pairs
				t.Errorf("%d pairs: released after %d of %d buffers", tc.pairs, i, len(buffers))
			}
			b.Free()
		}
		if m.taken != tc.chunks-1 || m.released != 1 || r.Pairs.Len() != 0 {
			t.Errorf("%d pairs, sent: %+v, %d bytes are left", tc.pairs, m, r.Pairs.Len())
		}
	}
	m := &meter{most: 3 * chunkBytes}
	p := Pairs{Account: m}
	for range 3 {
		if err := p.Append(&pair); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(p.Append(&pair), p.Append(&pair)); !errors.Is(err, errMeter) {
		t.Errorf("more than there is: %v", err)
	}
	if p.Reset(); p.Len() != 0 {
		t.Errorf("%d bytes are left", p.Len())
	}
}

// Ensure that a small answer keeps no chunk until it is sent.
func TestPairs_small(t *testing.T) {
	m := &meter{most: chunkBytes}
	r := &RangeResponse{Pairs: Pairs{Account: m}}
	if err := r.Pairs.Append(&kv.KeyValue{Key: []byte("k"), Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	buffers, err := newCodec().Marshal(r)
	if err != nil || m.released != 1 || m.sending != 0 || len(buffers) != 1 || cap(buffers[0].ReadOnlyData()) > 64 {
		t.Errorf("%v, %+v, %d buffers of %d bytes", err, m, len(buffers), cap(buffers[0].ReadOnlyData()))
	}
}

// Ensure that chunks are not used again while gRPC has them.
func TestPairs_notSharedWhileSent(t *testing.T) {
	var waiting []mem.BufferSlice
	encode := func(i int) {
		r := &RangeResponse{}
		for range 8 {
			if err := r.Pairs.Append(&kv.KeyValue{Key: []byte("k"), Value: bytes.Repeat([]byte{byte('a' + i)}, 3000)}); err != nil {
				t.Fatal(err)
			}
		}
		buffers, err := newCodec().Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, buffers)
	}
	for i := range 20 {
		encode(i)
		if i%3 == 2 {
			waiting[0].Free()
			waiting = waiting[1:]
		}
	}
	for _, buffers := range waiting {
		var m pb.RangeResponse
		if err := proto.Unmarshal(buffers.Materialize(), &m); err != nil || len(m.Kvs) != 8 {
			t.Fatal(err, len(m.Kvs))
		}
		for _, pair := range m.Kvs {
			if !bytes.Equal(pair.Value, bytes.Repeat(m.Kvs[0].Value[:1], 3000)) {
				t.Error("an answer that was not sent has changed")
			}
		}
		buffers.Free()
	}
}

// BenchmarkPairs is the road of the pairs of a range from the store's words to gRPC.
func BenchmarkPairs(b *testing.B) {
	for _, bc := range []struct{ pairs, bytes int }{{1, 256}, {1000, 256}, {500, 10 << 10}} {
		pair := kv.KeyValue{Key: []byte("/registry/pods/default/pod-000001"), Value: make([]byte, bc.bytes),
			CreateRevision: 1000, ModRevision: 2000, Version: 3}
		b.Run(fmt.Sprintf("%d of %d bytes", bc.pairs, bc.bytes), func(b *testing.B) {
			c := newCodec()
			b.ReportAllocs()
			for b.Loop() {
				r := &RangeResponse{Header: Header{Cluster: 1 << 60, Member: 1 << 61, Revision: 100_000, Term: 5}}
				for range bc.pairs {
					if err := r.Pairs.Append(&pair); err != nil {
						b.Fatal(err)
					}
				}
				buffers, err := c.Marshal(r)
				if err != nil {
					b.Fatal(err)
				}
				buffers.Free()
			}
		})
	}
}
