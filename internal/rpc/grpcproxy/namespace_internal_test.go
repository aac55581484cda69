package grpcproxy

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
)

func encoded(t testing.TB, m proto.Message) *frame {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &frame{data: mem.BufferSlice{mem.SliceBuffer(raw)}}
}

// Ensure that requests get the prefix wherever a key is, and that ranges end with the namespace.
func TestNamespace_request(t *testing.T) {
	for _, row := range []struct {
		method  string
		request proto.Message
		want    string
	}{
		{pb.KV_Range_FullMethodName, &pb.RangeRequest{Key: []byte("a")}, `key:"ns/a"`},
		{pb.KV_Range_FullMethodName, &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("c"), Limit: 2},
			`key:"ns/a" range_end:"ns/c" limit:2`},
		{pb.KV_RangeStream_FullMethodName, &pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}},
			`key:"ns/\x00" range_end:"ns0"`},
		{pb.KV_Put_FullMethodName, &pb.PutRequest{Key: []byte("a"), Value: []byte("a")}, `key:"ns/a" value:"a"`},
		{pb.KV_DeleteRange_FullMethodName, &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte{0}},
			`key:"ns/a" range_end:"ns0"`},
		{pb.KV_Txn_FullMethodName, &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: []byte("c"), RangeEnd: []byte("d")}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("p")}}}, {}},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{{
				Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte("d")}}}}}}}},
		}, `compare:{key:"ns/c" range_end:"ns/d"} success:{request_put:{key:"ns/p"}} success:{} ` +
			`failure:{request_txn:{success:{request_delete_range:{key:"ns/d"}}}}`},
		{pb.Watch_Watch_FullMethodName, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{}}}, `create_request:{key:"ns/\x00"}`},
		{pb.Watch_Watch_FullMethodName, &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{
			CancelRequest: &pb.WatchCancelRequest{WatchId: 3}}}, `cancel_request:{watch_id:3}`},
		{v3lockpb.Lock_Lock_FullMethodName, &v3lockpb.LockRequest{Lease: 1}, `name:"ns/" lease:1`},
		{v3lockpb.Lock_Unlock_FullMethodName, &v3lockpb.UnlockRequest{Key: []byte("l/1")}, `key:"ns/l/1"`},
		{v3electionpb.Election_Campaign_FullMethodName, &v3electionpb.CampaignRequest{Name: []byte("e"), Value: []byte("v")},
			`name:"ns/e" value:"v"`},
		{v3electionpb.Election_Observe_FullMethodName, &v3electionpb.LeaderRequest{Name: []byte("e")}, `name:"ns/e"`},
		{v3electionpb.Election_Proclaim_FullMethodName, &v3electionpb.ProclaimRequest{Leader: &v3electionpb.LeaderKey{
			Name: []byte("e"), Key: []byte("e/1"), Rev: 2}}, `leader:{name:"ns/e" key:"ns/e/1" rev:2}`},
		{v3electionpb.Election_Resign_FullMethodName, &v3electionpb.ResignRequest{}, ``},
		{pb.Lease_LeaseGrant_FullMethodName, &pb.LeaseGrantRequest{TTL: 5}, `TTL:5`},
	} {
		f := encoded(t, row.request)
		if err := (namespace("ns/")).request(methodOf(row.method), f); err != nil {
			t.Errorf("%s: %v", row.method, err)
			continue
		}
		got := row.request.ProtoReflect().New().Interface()
		want := row.request.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(row.want), want); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(f.bytes(), got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", row.method, got, err, want)
		}
	}
}

// Ensure that a request without a key is refused in etcd's words, and what is not known, or no message, is refused, too.
func TestNamespace_request_refused(t *testing.T) {
	n := namespace("ns/")
	for method, request := range map[string]proto.Message{
		pb.KV_Range_FullMethodName:          &pb.RangeRequest{RangeEnd: []byte{0}},
		pb.KV_Put_FullMethodName:            &pb.PutRequest{},
		pb.KV_Txn_FullMethodName:            &pb.TxnRequest{Compare: []*pb.Compare{{}}},
		v3lockpb.Lock_Unlock_FullMethodName: &v3lockpb.UnlockRequest{},
	} {
		if err := n.request(methodOf(method), encoded(t, request)); !errors.Is(err, rpctypes.ErrGRPCEmptyKey) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	parts := &pb.TxnRequest{}
	for range 70_000 {
		parts.Success = append(parts.Success, &pb.RequestOp{})
	}
	for what, f := range map[string]*frame{"no message": text("\xff\xff"), "many parts": encoded(t, parts)} {
		if err := n.request(methodOf(pb.KV_Txn_FullMethodName), f); err == nil {
			t.Errorf("%s: it was passed on", what)
		}
	}
	for name, want := range map[string]codes.Code{
		"/quorate.v1.Writer/Propose": codes.Unimplemented, "/etcdserverpb.KV/Other": codes.Unimplemented, "": codes.Unimplemented,
		pb.KV_Compact_FullMethodName: codes.OK, pb.Maintenance_Status_FullMethodName: codes.OK, pb.KV_Put_FullMethodName: codes.OK,
	} {
		if got := status.Code(n.admits(methodOf(name), name)); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// Ensure that responses name keys as clients know them, and no keys of others.
func TestNamespace_response(t *testing.T) {
	kv := func(key string) *mvccpb.KeyValue { return &mvccpb.KeyValue{Key: []byte(key), Value: []byte("v")} }
	for _, row := range []struct {
		method   string
		response proto.Message
		keys     string
	}{
		{pb.KV_Range_FullMethodName, &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{kv("ns/a"), kv("ns/b")}}, "a b"},
		{pb.KV_RangeStream_FullMethodName, &pb.RangeStreamResponse{RangeResponse: &pb.RangeResponse{
			Kvs: []*mvccpb.KeyValue{kv("ns/a")}}}, "a"},
		{pb.KV_Put_FullMethodName, &pb.PutResponse{PrevKv: kv("ns/a")}, "a"},
		{pb.KV_DeleteRange_FullMethodName, &pb.DeleteRangeResponse{PrevKvs: []*mvccpb.KeyValue{kv("ns/a")}}, "a"},
		{pb.KV_Txn_FullMethodName, &pb.TxnResponse{Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{kv("ns/a")}}}},
			{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: &pb.TxnResponse{Responses: []*pb.ResponseOp{
				{Response: &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{PrevKv: kv("ns/b")}}},
				{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{
					PrevKvs: []*mvccpb.KeyValue{kv("ns/c")}}}},
			}}}},
		}}, "a b c"},
		{pb.Watch_Watch_FullMethodName, &pb.WatchResponse{Events: []*mvccpb.Event{{Kv: kv("ns/a"), PrevKv: kv("ns/b")}}}, "a b"},
		{pb.Lease_LeaseTimeToLive_FullMethodName, &pb.LeaseTimeToLiveResponse{Keys: [][]byte{[]byte("ns/a"), []byte("other"),
			[]byte("ns/b")}}, "a b"},
		{v3lockpb.Lock_Lock_FullMethodName, &v3lockpb.LockResponse{Key: []byte("ns/l/1")}, "l/1"},
		{v3electionpb.Election_Campaign_FullMethodName, &v3electionpb.CampaignResponse{Leader: &v3electionpb.LeaderKey{
			Name: []byte("ns/e"), Key: []byte("ns/e/1")}}, "e e/1"},
		{v3electionpb.Election_Leader_FullMethodName, &v3electionpb.LeaderResponse{Kv: kv("ns/e/1")}, "e/1"},
	} {
		f := encoded(t, row.response)
		if err := (namespace("ns/")).response(methodOf(row.method), f); err != nil {
			t.Errorf("%s: %v", row.method, err)
			continue
		}
		raw := f.bytes()
		if bytes.Contains(raw, []byte("ns/")) || bytes.Contains(raw, []byte("other")) {
			t.Errorf("%s: got %q", row.method, raw)
		}
		for key := range strings.FieldsSeq(row.keys) {
			if !bytes.Contains(raw, protowire.AppendString(nil, key)) {
				t.Errorf("%s: %q lacks %s", row.method, raw, key)
			}
		}
	}
}

// FuzzNamespace sends requests of arbitrary bytes: those that are passed on name no key outside of the namespace.
func FuzzNamespace(f *testing.F) {
	f.Add([]byte("\x0a\x01a\x12\x01b"), []byte("ns/"))
	f.Add([]byte("\x0a\x01\x00\x12\x01\x00"), []byte("\xff\xff"))
	f.Add([]byte("\x12\x07\x12\x05\x0a\x01k\x12\x00"), []byte("n"))
	f.Fuzz(func(t *testing.T, request, prefix []byte) {
		if len(prefix) == 0 {
			return
		}
		n := namespace(prefix)
		for name, kind := range keyed {
			if kind.request == nil {
				continue
			}
			passed := text(string(request))
			if n.request(methodOf(name), passed) != nil {
				continue
			}
			m := kind.request.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(passed.bytes(), m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkKeys(t, n, m)
		}
	})
}

func checkKeys(t *testing.T, n namespace, m proto.Message) {
	t.Helper()
	inside := func(key, end []byte) {
		t.Helper()
		if !bytes.HasPrefix(key, n) {
			t.Fatalf("%q is outside of %q: %v", key, n, m)
		}
		if limit := n.end(); len(end) > 0 && !bytes.HasPrefix(end, n) && !bytes.Equal(end, limit) {
			t.Fatalf("%q ends outside of %q: %v", end, n, m)
		}
	}
	switch r := m.(type) {
	case *pb.RangeRequest:
		inside(r.Key, r.RangeEnd)
	case *pb.PutRequest:
		inside(r.Key, nil)
	case *pb.DeleteRangeRequest:
		inside(r.Key, r.RangeEnd)
	case *pb.WatchRequest:
		if create := r.GetCreateRequest(); create != nil {
			inside(create.Key, create.RangeEnd)
		}
	case *pb.TxnRequest:
		for _, c := range r.Compare {
			inside(c.Key, c.RangeEnd)
		}
		for _, op := range append(r.Success, r.Failure...) {
			for _, one := range []proto.Message{op.GetRequestRange(), op.GetRequestPut(), op.GetRequestDeleteRange(), op.GetRequestTxn()} {
				if one.ProtoReflect().IsValid() {
					checkKeys(t, n, one)
				}
			}
		}
	case *v3lockpb.LockRequest:
		inside(r.Name, nil)
	case *v3lockpb.UnlockRequest:
		inside(r.Key, nil)
	case *v3electionpb.CampaignRequest:
		inside(r.Name, nil)
	case *v3electionpb.LeaderRequest:
		inside(r.Name, nil)
	}
}
