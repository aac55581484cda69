package rpc

import (
	"bytes"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// BenchmarkCodec sets our encodings beside those of the protobuf library.
func BenchmarkCodec(b *testing.B) {
	var keys []kv.KeyValue
	for i := range 1000 {
		keys = append(keys, kv.KeyValue{Key: fmt.Appendf(nil, "key/%06d", i), Value: bytes.Repeat([]byte("v"), 256),
			CreateRevision: 1000, ModRevision: 2000, Version: 3})
	}
	h := header{cluster: 1 << 60, member: 1 << 61, revision: 100_000, term: 5}
	b.Run("range1000/ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buffers, err := codec{newStats()}.Marshal(&rangeResponse{header: h, result: kv.RangeResult{KVs: keys, Count: 1000}})
			if err != nil {
				b.Fatal(err)
			}
			buffers.Free()
		}
	})
	b.Run("range1000/protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m := &pb.RangeResponse{Header: headerOf(h), Kvs: keyValuesOf(keys), Count: 1000}
			if _, err := proto.Marshal(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	src, err := proto.Marshal(&pb.PutRequest{Key: []byte("key/000001"), Value: bytes.Repeat([]byte("v"), 256)})
	if err != nil {
		b.Fatal(err)
	}
	data := mem.BufferSlice{mem.SliceBuffer(src)}
	b.Run("put/ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := (codec{newStats()}).Unmarshal(data, new(putCall)); err != nil {
				b.Fatal(err)
			}
			if _, err := (codec{newStats()}).Marshal(&putResponse{header: h}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put/protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m pb.PutRequest
			if err := proto.Unmarshal(src, &m); err != nil {
				b.Fatal(err)
			}
			if _, err := proto.Marshal(&pb.PutResponse{Header: headerOf(h)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
