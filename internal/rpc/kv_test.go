package rpc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestKV_Put_thenGetDeleteAndHeaders(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	put, err := c.Put(ctx, "a", "1")
	if err != nil {
		t.Fatal(err)
	}
	if h := put.Header; h.Revision != 2 || h.ClusterId != uint64(testCluster) || h.MemberId != uint64(testMember) ||
		h.RaftTerm == 0 {
		t.Errorf("put header: got %v, want revision 2, the ids and a term", h)
	}
	put, err = c.Put(ctx, "a", "2", clientv3.WithPrevKV())
	if err != nil {
		t.Fatal(err)
	}
	if put.PrevKv == nil || string(put.PrevKv.Value) != "1" {
		t.Errorf("put with prev_kv: got %v, want value 1", put.PrevKv)
	}
	get, err := c.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if len(get.Kvs) != 1 || string(get.Kvs[0].Value) != "2" || get.Kvs[0].Version != 2 || get.Header.Revision != 3 {
		t.Errorf("get: got %v, want value 2, version 2 at revision 3", get)
	}
	old, err := c.Get(ctx, "a", clientv3.WithRev(2))
	if err != nil {
		t.Fatal(err)
	}
	if len(old.Kvs) != 1 || string(old.Kvs[0].Value) != "1" || old.Header.Revision != 3 {
		t.Errorf("get at revision 2: got %v, want value 1 and the current revision 3", old)
	}
	deleted, err := c.Delete(ctx, "a", clientv3.WithPrevKV())
	if err != nil {
		t.Fatal(err)
	}
	if deleted.Deleted != 1 || len(deleted.PrevKvs) != 1 || deleted.Header.Revision != 4 {
		t.Errorf("delete: got %v, want 1 key at revision 4", deleted)
	}
	none, err := c.Delete(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if none.Deleted != 0 || none.Header.Revision != 4 {
		t.Errorf("delete of nothing: got %v, want revision 4", none)
	}
	if _, err := c.Compact(ctx, 3, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "a", clientv3.WithRev(2)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("get below the compaction: got %v, want %v", err, rpctypes.ErrCompacted)
	}
	if _, err := c.Get(ctx, "a", clientv3.WithRev(99)); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("get of the future: got %v, want %v", err, rpctypes.ErrFutureRev)
	}
	if _, err := c.Compact(ctx, 3); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("second compaction: got %v, want %v", err, rpctypes.ErrCompacted)
	}
}

// putOp returns a put as an operation of a transaction.
func putOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key)}}}
}

func deleteOp(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

func rangeOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

func txnOp(then, otherwise []*pb.RequestOp) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{
		RequestTxn: &pb.TxnRequest{Success: then, Failure: otherwise}}}
}

func list(ops ...*pb.RequestOp) []*pb.RequestOp { return ops }

func manyPuts(n int) []*pb.RequestOp {
	var ops []*pb.RequestOp
	for i := range n {
		ops = append(ops, putOp(fmt.Sprint("key", i)))
	}
	return ops
}

func TestKV_requests_areChecked(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	conn, ctx := s.conn(t), waitContext(t)
	kvc := pb.NewKVClient(conn)
	call := func(request proto.Message) error {
		var err error
		switch r := request.(type) {
		case *pb.PutRequest:
			_, err = kvc.Put(ctx, r)
		case *pb.RangeRequest:
			_, err = kvc.Range(ctx, r)
		case *pb.DeleteRangeRequest:
			_, err = kvc.DeleteRange(ctx, r)
		case *pb.TxnRequest:
			_, err = kvc.Txn(ctx, r)
		case *pb.CompactionRequest:
			_, err = kvc.Compact(ctx, r)
		}
		return err
	}
	k := []byte("k")
	txn := func(then ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: then} }
	twice := rpctypes.ErrGRPCDuplicateKey
	for _, row := range []struct {
		name    string
		request proto.Message
		want    error
	}{
		{"a put without key", &pb.PutRequest{}, rpctypes.ErrGRPCEmptyKey},
		{"a put with a value to ignore", &pb.PutRequest{Key: k, Value: k, IgnoreValue: true},
			rpctypes.ErrGRPCValueProvided},
		{"a put with a lease to ignore", &pb.PutRequest{Key: k, Lease: 1, IgnoreLease: true},
			rpctypes.ErrGRPCLeaseProvided},
		{"a put that ignores a missing value", &pb.PutRequest{Key: k, IgnoreValue: true}, rpctypes.ErrGRPCKeyNotFound},
		{"a put with an unknown lease", &pb.PutRequest{Key: k, Lease: 77}, rpctypes.ErrGRPCLeaseNotFound},
		{"a range without key", &pb.RangeRequest{}, rpctypes.ErrGRPCEmptyKey},
		{"an unknown order", &pb.RangeRequest{Key: k, SortOrder: 9}, rpctypes.ErrGRPCInvalidSortOption},
		{"an unknown target", &pb.RangeRequest{Key: k, SortTarget: -1}, rpctypes.ErrGRPCInvalidSortOption},
		{"a negative revision is now", &pb.RangeRequest{Key: k, Revision: -5}, nil},
		{"an inverted range is empty", &pb.RangeRequest{Key: k, RangeEnd: []byte("a")}, nil},
		{"a delete without key", &pb.DeleteRangeRequest{}, rpctypes.ErrGRPCEmptyKey},
		{"a compaction of the future", &pb.CompactionRequest{Revision: 1 << 40}, rpctypes.ErrGRPCFutureRev},
		{"an empty txn", &pb.TxnRequest{}, nil},
		{"a compare without key", &pb.TxnRequest{Compare: []*pb.Compare{{}}}, rpctypes.ErrGRPCEmptyKey},
		{"an op that is nothing", &pb.TxnRequest{Success: list(&pb.RequestOp{})}, rpctypes.ErrGRPCKeyNotFound},
		{"as many ops as allowed", &pb.TxnRequest{Success: manyPuts(128)}, nil},
		{"one op too many", &pb.TxnRequest{Success: manyPuts(129)}, rpctypes.ErrGRPCTooManyOps},
		{"nested ops that fit in what is left", &pb.TxnRequest{Failure: list(txnOp(manyPuts(127), nil))}, nil},
		{"nested ops that do not", &pb.TxnRequest{Failure: list(txnOp(manyPuts(128), nil))},
			rpctypes.ErrGRPCTooManyOps},
		{"a key put twice", txn(putOp("a"), putOp("b"), putOp("a")), twice},
		{"a key put and deleted", txn(putOp("a"), deleteOp("a", "")), twice},
		{"a put inside a deleted range", txn(deleteOp("a", "c"), putOp("b")), twice},
		{"a put at the end of a deleted range", txn(deleteOp("a", "c"), putOp("c")), nil},
		{"a put of the first key of an open delete", txn(deleteOp("a", "\x00"), putOp("a")), nil},
		{"a put behind the first key of an open delete", txn(deleteOp("a", "\x00"), putOp("b")), nil},
		{"a put of a key that an inverted delete begins with", txn(deleteOp("b", "a"), putOp("b")), nil},
		{"a put beside nested open deletes", txn(txnOp(list(deleteOp("a", "\x00")), nil), putOp("a")), nil},
		{"deletes may overlap", txn(deleteOp("a", "c"), deleteOp("b", "")), nil},
		{"both lists may put a key",
			&pb.TxnRequest{Success: list(putOp("a")), Failure: list(putOp("a"))}, nil},
		{"both branches of a nested txn may", txn(txnOp(list(putOp("a")), list(putOp("a")))), nil},
		{"a nested put of a key that is put", txn(putOp("a"), txnOp(list(putOp("a")), nil)), twice},
		{"two nested puts of a key", txn(txnOp(list(putOp("a")), nil), txnOp(nil, list(putOp("a")))), twice},
		{"a nested put of a key that is deleted", txn(txnOp(nil, list(putOp("a"))), deleteOp("a", "b")), twice},
		{"a put of a key that is deleted below", txn(txnOp(list(deleteOp("a", "z")), nil), putOp("b")), twice},
		{"a later nested delete is not held against a nested put",
			txn(txnOp(list(putOp("a")), nil), txnOp(list(deleteOp("a", "")), nil)), nil},
		{"an earlier one is", txn(txnOp(list(deleteOp("a", "")), nil), txnOp(list(putOp("a")), nil)), twice},
		{"a failing op rejects all", &pb.TxnRequest{Success: list(putOp("x"), &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
			RequestPut: &pb.PutRequest{Key: k, Lease: 77}}})}, rpctypes.ErrGRPCLeaseNotFound},
		{"a future range in a read-only txn", &pb.TxnRequest{Success: list(&pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: k, Revision: 1 << 40}}})}, rpctypes.ErrGRPCFutureRev},
	} {
		if got := call(row.request); status.Code(got) != status.Code(row.want) ||
			row.want != nil && rpctypes.ErrorDesc(got) != rpctypes.ErrorDesc(row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestKV_Put_tooLarge(t *testing.T) {
	s := serveMember(t, nil)
	conn, ctx := s.conn(t), waitContext(t)
	kvc := pb.NewKVClient(conn)
	_, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 1<<20+700<<10)})
	tooLarge := rpctypes.ErrorDesc(rpctypes.ErrGRPCRequestTooLarge)
	if status.Code(err) != codes.InvalidArgument || rpctypes.ErrorDesc(err) != tooLarge {
		t.Errorf("1.7 MiB: got %v, want %v", err, rpctypes.ErrGRPCRequestTooLarge)
	}
	_, err = kvc.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 2300<<10)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("2.3 MiB: got %v, want gRPC's own ResourceExhausted", err)
	}
	if _, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("k"), Value: make([]byte, 1<<20)}); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
}

func TestKV_Txn_evaluatesOnMember(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	txn, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version("a"), "=", 0)).
		Then(clientv3.OpPut("a", "1"), clientv3.OpGet("a")).Else(clientv3.OpGet("a")).Commit()
	if err != nil {
		t.Fatal(err)
	}
	if !txn.Succeeded || len(txn.Responses) != 2 || txn.Header.Revision != 2 ||
		string(txn.Responses[1].GetResponseRange().Kvs[0].Value) != "1" {
		t.Errorf("creating txn: got %v", txn)
	}
	if h := txn.Responses[0].GetResponsePut().Header; h == nil || h.Revision != 2 || h.ClusterId != 0 {
		t.Errorf("header of an op: got %v, want only revision 2", h)
	}
	txn, err = c.Txn(ctx).If(clientv3.Compare(clientv3.Value("a"), "!=", "1")).
		Then(clientv3.OpPut("a", "2")).Else(clientv3.OpGet("a"), clientv3.OpGet("b")).Commit()
	if err != nil {
		t.Fatal(err)
	}
	if txn.Succeeded || len(txn.Responses) != 2 || txn.Responses[0].GetResponseRange().Count != 1 ||
		txn.Header.Revision != 2 {
		t.Errorf("failing txn: got %v", txn)
	}
	nested, err := pb.NewKVClient(c.ActiveConnection()).Txn(ctx, &pb.TxnRequest{
		Success: list(txnOp(list(rangeOp("a")), nil))})
	if err != nil {
		t.Fatal(err)
	}
	inner := nested.Responses[0].GetResponseTxn()
	if inner == nil || inner.Header == nil || inner.Header.Revision != 0 || !inner.Succeeded || len(inner.Responses) != 1 {
		t.Errorf("nested txn: got %v, want an empty header and one response", nested)
	}
}

// TestKV_Txn_serializableNeedsNoLeader tells the two ways of serving a transaction apart by the one that needs no leader: that
// of a serializable one.
func TestKV_Txn_serializableNeedsNoLeader(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, nil)
	kvc, ctx := pb.NewKVClient(s.conn(t)), waitContext(t)
	if _, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("a"), Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	backend.lead(0)
	serializable := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
		RequestRange: &pb.RangeRequest{Key: []byte("a"), Serializable: true}}}
	compare := []*pb.Compare{{Key: []byte("a"), Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_Value{Value: []byte("1")}}}
	response, err := kvc.Txn(ctx, &pb.TxnRequest{Compare: compare, Success: list(serializable)})
	if err != nil || !response.Succeeded || len(response.Responses) != 1 {
		t.Errorf("serializable txn: got %v, %v", response, err)
	}
	for _, test := range []struct {
		name    string
		request *pb.TxnRequest
		want    codes.Code
	}{
		{"one range is linearizable", &pb.TxnRequest{Success: list(serializable, rangeOp("a"))}, codes.Unavailable},
		{"it only compares", &pb.TxnRequest{Compare: compare}, codes.Unavailable},
		{"it is nested", &pb.TxnRequest{Success: list(txnOp(list(serializable), nil))}, codes.DeadlineExceeded},
	} {
		if _, err := kvc.Txn(ctx, test.request); status.Code(err) != test.want {
			t.Errorf("txn without leader, %s: got %v, want %v", test.name, err, test.want)
		}
	}
}

func TestKV_RangeStream_chunksAddUpToTheRange(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.MaxRequestBytes = 20_000 })
	kvc, ctx := pb.NewKVClient(s.conn(t)), waitContext(t)
	for i := range 300 {
		value := bytes.Repeat([]byte("v"), 100+i)
		if _, err := kvc.Put(ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "k%03d", i), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := kvc.Put(ctx, &pb.PutRequest{Key: []byte("k000"), Value: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		request *pb.RangeRequest
	}{
		{"all", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l")}},
		{"with a limit", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 123}},
		{"with a limit below the first chunk", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 3}},
		{"with a limit that is the whole", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Limit: 300}},
		{"one key", &pb.RangeRequest{Key: []byte("k001")}},
		{"nothing", &pb.RangeRequest{Key: []byte("x"), RangeEnd: []byte("y")}},
		{"only keys", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), KeysOnly: true}},
		{"only keys, with a limit", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), KeysOnly: true, Limit: 123}},
		{"only the count", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), CountOnly: true}},
		{"an old revision", &pb.RangeRequest{Key: []byte("k"), RangeEnd: []byte("l"), Revision: 100}},
		{"a target without an order that one chunk holds", &pb.RangeRequest{
			Key: []byte("k000"), RangeEnd: []byte("k005"), SortTarget: pb.RangeRequest_MOD,
		}},
	} {
		want, err := kvc.Range(ctx, proto.Clone(row.request).(*pb.RangeRequest))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := kvc.RangeStream(ctx, row.request)
		if err != nil {
			t.Fatal(err)
		}
		got := &pb.RangeResponse{}
		for chunks := 0; ; chunks++ {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			if chunks == 0 && len(chunk.RangeResponse.Kvs) > 10 {
				t.Errorf("%s: first chunk has %d keys, want at most 10", row.name, len(chunk.RangeResponse.Kvs))
			}
			proto.Merge(got, chunk.RangeResponse)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: the stream gives %d keys, header %v, more %v, count %d; want %d, %v, %v, %d", row.name,
				len(got.Kvs), got.Header, got.More, got.Count, len(want.Kvs), want.Header, want.More, want.Count)
		}
	}
	for _, request := range []*pb.RangeRequest{
		{Key: []byte("k"), SortOrder: pb.RangeRequest_DESCEND}, {Key: []byte("k"), MinModRevision: 1},
	} {
		stream, err := kvc.RangeStream(ctx, request)
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%v: got %v, want Unimplemented", request, err)
		}
	}
}

// A sort target without an order must not change the order of the stream: it continues behind the last key it sent.
func TestKV_RangeStream_targetWithoutOrder(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	kvc, ctx := pb.NewKVClient(s.conn(t)), waitContext(t)
	const keys = 60
	for i := range keys {
		put := &pb.PutRequest{Key: fmt.Appendf(nil, "k%03d", i), Value: fmt.Appendf(nil, "%03d", keys-i)}
		if _, err := kvc.Put(ctx, put); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := kvc.RangeStream(ctx, &pb.RangeRequest{
		Key: []byte("k"), RangeEnd: []byte("l"), SortTarget: pb.RangeRequest_VALUE,
	})
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range chunk.RangeResponse.Kvs {
			if want := fmt.Sprintf("k%03d", next); string(pair.Key) != want {
				t.Fatalf("got %s, want %s", pair.Key, want)
			}
			next++
		}
	}
	if next != keys {
		t.Errorf("got %d keys, want %d", next, keys)
	}
}
