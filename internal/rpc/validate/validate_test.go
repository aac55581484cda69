package validate_test

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc/validate"
)

func TestTxn(t *testing.T) {
	key := []byte("k")
	puts := func(n int) (ops []kv.Op) {
		for range n {
			ops = append(ops, kv.Op{Put: &kv.PutOp{Key: key}})
		}
		return ops
	}
	deep := &kv.TxnOp{}
	for range kv.MaxTxnDepth {
		deep = &kv.TxnOp{Then: []kv.Op{{Txn: deep}}}
	}
	for _, row := range []struct {
		name string
		op   *kv.TxnOp
		max  int
		want error
	}{
		{"as many operations as there may be", &kv.TxnOp{Then: puts(4), Else: puts(4)}, 4, nil},
		{"one too many", &kv.TxnOp{Else: puts(5)}, 4, rpctypes.ErrGRPCTooManyOps},
		{"a nested one that uses what is left", &kv.TxnOp{Then: []kv.Op{{Txn: &kv.TxnOp{Then: puts(3)}}}}, 4, nil},
		{"a nested one that uses more", &kv.TxnOp{Then: []kv.Op{{Txn: &kv.TxnOp{Then: puts(4)}}}}, 4, rpctypes.ErrGRPCTooManyOps},
		{"one deeper than the log holds", deep, 1000, rpctypes.ErrGRPCTooManyOps},
		{"a comparison without a key", &kv.TxnOp{Compares: []kv.Compare{{}}}, 4, rpctypes.ErrGRPCEmptyKey},
		{"a range without a key", &kv.TxnOp{Then: []kv.Op{{Range: &kv.RangeOp{}}}}, 4, rpctypes.ErrGRPCEmptyKey},
		{"a put with a value that it ignores", &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: key, Value: key, IgnoreValue: true}}}}, 4,
			rpctypes.ErrGRPCValueProvided},
		{"an operation that is none", &kv.TxnOp{Then: []kv.Op{{}}}, 4, rpctypes.ErrGRPCKeyNotFound},
	} {
		if got := validate.Txn(row.op, row.max); got != row.want {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

func TestPeerURLs(t *testing.T) {
	for _, row := range []struct {
		raw  []string
		want string
	}{
		{nil, ""},
		{[]string{"http://b:1", " http://a:1", "http://b:1"}, "[http://a:1 http://b:1]"},
		{[]string{"https://[::1]:2380"}, "[https://[::1]:2380]"},
		{[]string{"unix:///run/a"}, "[unix:///run/a]"},
		{[]string{"http://a"}, ""},
		{[]string{"http://a:1/path"}, ""},
		{[]string{"ftp://a:1"}, ""},
		{[]string{"http://a:1", "%"}, ""},
	} {
		got, err := validate.PeerURLs(row.raw)
		if (err == nil) != (row.want != "") || err == nil && fmt.Sprint(got) != row.want {
			t.Errorf("%v: got %v, %v; want %s", row.raw, got, err, row.want)
		}
	}
}

// Ensure that a request is refused exactly if etcd's log entry of it would be larger than the limit.
func TestSize(t *testing.T) {
	for _, value := range []int{0, 100, 1000, 20_000, 3_000_000} {
		request := &pb.PutRequest{Key: []byte("k"), Value: make([]byte, value)}
		entry := &pb.InternalRaftRequest{Header: &pb.RequestHeader{ID: 1 << 62}, Put: request}
		size := proto.Size(entry) + 1 // an id of ten bytes
		if err := validate.Size(proto.Size(request), size); err != nil {
			t.Errorf("%d bytes at their limit: %v", value, err)
		}
		if err := validate.Size(proto.Size(request), size-1); err != rpctypes.ErrGRPCRequestTooLarge {
			t.Errorf("%d bytes beyond their limit: got %v", value, err)
		}
	}
}
