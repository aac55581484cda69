package wire

import (
	"bytes"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
)

// read is a request both ways, from the bytes of gRPC to the words of kv.
type read struct {
	name     string
	message  proto.Message
	ours     func() Decoder
	protobuf func() proto.Message
	convert  func(proto.Message) any
}

var sink any

// BenchmarkCodec_Unmarshal sets our reading beside that of the protobuf library, which then has to be turned into the words
// of kv. The figures in this package's comments are from it.
func BenchmarkCodec_Unmarshal(b *testing.B) {
	key, value := []byte("registry/pods/default/nginx-1"), bytes.Repeat([]byte("v"), 256)
	put := &pb.PutRequest{Key: key, Value: value, Lease: 1 << 50}
	ranged := &pb.RangeRequest{Key: key, RangeEnd: []byte("registry/pods/default0"), Limit: 500, Revision: 1 << 20}
	update := &pb.TxnRequest{ // what Kubernetes sends for each write
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: 1 << 20}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: put}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
	for _, r := range []read{
		{"put", put, func() Decoder { return new(PutCall) }, func() proto.Message { return new(pb.PutRequest) },
			func(m proto.Message) any { op := putOf(m.(*pb.PutRequest)); return &op }},
		{"range", ranged, func() Decoder { return new(RangeCall) }, func() proto.Message { return new(pb.RangeRequest) },
			func(m proto.Message) any { op := rangeOf(m.(*pb.RangeRequest)); return &op }},
		{"delete", &pb.DeleteRangeRequest{Key: key}, func() Decoder { return new(DeleteCall) },
			func() proto.Message { return new(pb.DeleteRangeRequest) },
			func(m proto.Message) any { op := deleteOf(m.(*pb.DeleteRangeRequest)); return &op }},
		{"txn", update, func() Decoder { return new(TxnCall) }, func() proto.Message { return new(pb.TxnRequest) },
			func(m proto.Message) any { op := txnOf(m.(*pb.TxnRequest)); return &op }},
	} {
		src, err := proto.Marshal(r.message)
		if err != nil {
			b.Fatal(err)
		}
		data, c := mem.BufferSlice{mem.SliceBuffer(src)}, newCodec()
		b.Run(r.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call := r.ours()
				if err := c.Unmarshal(data, call); err != nil {
					b.Fatal(err)
				}
				sink = call
			}
		})
		b.Run(r.name+"/protobuf", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := r.protobuf()
				if err := c.Unmarshal(data, m); err != nil {
					b.Fatal(err)
				}
				sink = r.convert(m)
			}
		})
	}
}

// BenchmarkCodec_Marshal sets our writing of results beside the protobuf library, for which they have to become messages.
func BenchmarkCodec_Marshal(b *testing.B) {
	var keys []kv.KeyValue
	for i := range 1000 {
		keys = append(keys, kv.KeyValue{Key: fmt.Appendf(nil, "key/%06d", i), Value: bytes.Repeat([]byte("v"), 256),
			CreateRevision: 1000, ModRevision: 2000, Version: 3})
	}
	h := Header{Cluster: 1 << 60, Member: 1 << 61, Revision: 100_000, Term: 5}
	txn := &kv.TxnResult{Succeeded: true, Responses: []kv.OpResult{{Revision: 100_000, Put: &kv.PutResult{}}}}
	events := []kv.Event{{KV: keys[0], Prev: &keys[1]}}
	deleted := &kv.DeleteResult{Deleted: 1}
	ranged := func(n int) kv.RangeResult { return kv.RangeResult{KVs: keys[:n], Count: int64(n)} }
	rangeMessage := func(r kv.RangeResult) proto.Message {
		return &pb.RangeResponse{Header: headerOf(h), Kvs: keyValuesOf(r.KVs), More: r.More, Count: r.Count}
	}
	for _, r := range []struct {
		name     string
		ours     func() Encoder
		protobuf func() proto.Message
	}{
		{"put", func() Encoder { return &PutResponse{Header: h} },
			func() proto.Message { return &pb.PutResponse{Header: headerOf(h)} }},
		{"range1", func() Encoder { return &RangeResponse{Header: h, Result: ranged(1)} },
			func() proto.Message { return rangeMessage(ranged(1)) }},
		{"range1000", func() Encoder { return &RangeResponse{Header: h, Result: ranged(1000)} },
			func() proto.Message { return rangeMessage(ranged(1000)) }},
		{"delete", func() Encoder { return &DeleteResponse{Header: h, Result: deleted} },
			func() proto.Message { return &pb.DeleteRangeResponse{Header: headerOf(h), Deleted: 1} }},
		{"txn", func() Encoder { return &TxnResponse{Header: h, Result: txn} },
			func() proto.Message { return txnResponseOf(headerOf(h), txn) }},
		{"watch", func() Encoder { return &WatchResponse{Header: h, ID: 7, Events: EncodeEvents(events, false)} },
			func() proto.Message {
				return &pb.WatchResponse{Header: headerOf(h), WatchId: 7, Events: eventsOf(events, false)}
			}},
	} {
		run := func(name string, message func() any) {
			b.Run(r.name+name, func(b *testing.B) {
				c := newCodec()
				b.ReportAllocs()
				for b.Loop() {
					buffers, err := c.Marshal(message())
					if err != nil {
						b.Fatal(err)
					}
					buffers.Free()
				}
			})
		}
		run("/ours", func() any { return r.ours() })
		run("/protobuf", func() any { return r.protobuf() })
	}
}
