package wire

import (
	"bytes"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/api/v3electionpb"
)

// Ensure that a message of more parts than may be is refused before it is read, nested ones too, and a large one of few is not.
func TestCheckParts(t *testing.T) {
	empty := func(number protowire.Number, n int) []byte {
		return bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), nil), n)
	}
	newcomers, urls := func(n int) []byte { return empty(2, n) }, func(n int) []byte { return empty(1, n) }
	large, err := proto.Marshal(&v3electionpb.CampaignRequest{Value: newcomers(1 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		src  []byte
		into proto.Message
		want error
	}{
		{"as many as may be", newcomers(maxParts), new(quoratepb.ChangeSpec), nil},
		{"one more", newcomers(maxParts + 1), new(quoratepb.ChangeSpec), errTooManyParts},
		{"a value that looks like many", large, new(v3electionpb.CampaignRequest), nil},
		{"within another one", protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), newcomers(maxParts+1)),
			new(quoratepb.StartRequest), errTooManyParts},
		{"as many strings as may be", urls(maxParts), new(pb.MemberAddRequest), nil},
		{"keys of a lease in an answer", empty(5, maxParts+1), new(pb.LeaseTimeToLiveResponse), nil},
		{"one string more", urls(maxParts + 1), new(pb.MemberAddRequest), errTooManyParts},
	} {
		if err := CheckParts(row.src, row.into); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	if err := CheckParts(append(newcomers(maxParts), 0x0a), new(quoratepb.ChangeSpec)); err != nil {
		t.Errorf("a truncated message, which the library refuses: got %v", err)
	}
}

// Ensure that what a decoded message is said to take is about what it takes.
func TestCodec_PartBytes(t *testing.T) {
	many := &pb.TxnRequest{}
	for range 200 {
		many.Compare = append(many.Compare, &pb.Compare{Key: []byte("k")})
		many.Success = append(many.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: []byte("k")}}})
		many.Failure = append(many.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("k")}}}}}}})
	}
	urls := &pb.MemberAddRequest{PeerURLs: make([]string, 2000)}
	change := &quoratepb.ChangeSpec{}
	for range 2000 {
		change.Add = append(change.Add, &quoratepb.Newcomer{})
	}
	for _, row := range []struct {
		name    string
		message proto.Message
		into    func() any
	}{
		{"a transaction", many, func() any { return new(TxnCall) }},
		{"strings", urls, func() any { return new(pb.MemberAddRequest) }},
		{"messages", change, func() any { return new(quoratepb.ChangeSpec) }},
		{"a small one", &pb.MemberAddRequest{PeerURLs: []string{"a", "b"}}, func() any { return new(pb.MemberAddRequest) }},
	} {
		src, err := proto.Marshal(row.message)
		if err != nil {
			t.Fatal(err)
		}
		codec := Codec{Received: new(atomic.Uint64)}
		decode := func() any {
			into := row.into()
			if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(src)}, into); err != nil {
				t.Fatal(err)
			}
			return into
		}
		const times = 100
		kept := make([]any, times)
		before := liveBytes()
		for i := range kept {
			kept[i] = decode()
		}
		takes := int(liveBytes()-before) / times
		says := codec.PartBytes(src, kept[0])
		if len(src) > fewPartsBytes && (says < takes/2 || says > 8*takes) || len(src) <= fewPartsBytes && says != 0 {
			t.Errorf("%s of %d bytes takes %d, and is said to take %d", row.name, len(src), takes, says)
		}
		runtime.KeepAlive(kept)
	}
}

func liveBytes() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
