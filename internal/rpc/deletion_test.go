package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Ensure that a request to delete more bytes of keys at once than members can bear gets the advice to delete in parts, and
// changes nothing.
func TestKV_DeleteRange_tooManyKeyBytes(t *testing.T) {
	const keys, keyLen, most = 40, 500, 12_000
	s := serveNative(t, func(o *rpcOptions) { o.DeletionBytes = most })
	c, native, ctx := s.client(t), s.native(t), waitContext(t)
	kvs := pb.NewKVClient(s.conn(t))
	for i := range keys {
		if _, err := c.Put(ctx, fmt.Sprintf("k%02d", i)+strings.Repeat("k", keyLen), ""); err != nil {
			t.Fatal(err)
		}
	}
	ranges := func(bounds ...string) (ops []*pb.RequestOp) {
		for i := 0; i < len(bounds); i += 2 {
			ops = append(ops, deleteOp(bounds[i], bounds[i+1]))
		}
		return ops
	}
	txn := func(then, otherwise []*pb.RequestOp) func() error {
		return func() error {
			_, err := kvs.Txn(ctx, &pb.TxnRequest{Success: then, Failure: otherwise})
			return err
		}
	}
	remove := func(key, end string) func() error {
		return func() error {
			_, err := kvs.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)})
			return err
		}
	}
	for _, tc := range []struct {
		name string
		do   func() error
	}{
		{"all keys", remove("\x00", "\x00")},
		{"a range", remove("k", "l")},
		{"a range in a transaction", txn(ranges("k", "l"), nil)},
		{"in the other branch", txn(nil, ranges("k", "l"))},
		{"two ranges that are small", txn(ranges("k00", "k15", "k20", "k35"), nil)},
		{"in one that is nested", txn(ranges("k00", "k15"), list(txnOp(ranges("k20", "k35"), ranges("k00", "k30"))))},
	} {
		err := tc.do()
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "more than 12000 bytes") ||
			!strings.Contains(err.Error(), "in parts") {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
	if _, err := native.Delete(ctx, "k", clientv3.WithRange("l")); err == nil || !strings.Contains(err.Error(), "in parts") {
		t.Errorf("a native client: got %v", err)
	}
	if r, err := c.Get(ctx, "k", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || r.Count != keys {
		t.Fatalf("%d keys are left: %v", r.Count, err)
	}
	for _, tc := range []struct {
		name string
		do   func() error
	}{
		{"a part", remove("k00", "k15")},
		{"either of two parts", txn(ranges("k15", "k30"), ranges("k30", "k40"))},
		{"the rest", remove("k", "l")},
	} {
		if err := tc.do(); err != nil {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
	if r, err := c.Get(ctx, "k", clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || r.Count != 0 {
		t.Errorf("%d keys are left: %v", r.Count, err)
	}
}

// Ensure that a transaction whose deletions pass over very many deleted keys is refused, in whichever branch they are, and
// changes nothing; one such deletion alone is executed.
func TestKV_Txn_passesOverMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("its calls come one after the other, and take half a minute under the race detector")
	}
	const dead, most = 2200, 127
	s := serveNative(t, func(*rpcOptions) {})
	c := s.client(t)
	kvs := pb.NewKVClient(s.conn(t))
	var puts []*pb.RequestOp
	for i := range dead {
		puts = append(puts, putOp(fmt.Sprintf("d%04d", i)))
		if len(puts) == most || i == dead-1 {
			if _, err := kvs.Txn(waitContext(t), &pb.TxnRequest{Success: puts}); err != nil {
				t.Fatal(err)
			}
			puts = nil
		}
	}
	if _, err := c.Delete(waitContext(t), "d", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(waitContext(t), "live", ""); err != nil {
		t.Fatal(err)
	}
	var deletions []*pb.RequestOp
	for i := range most {
		deletions = append(deletions, deleteOp("d", fmt.Sprintf("d%04d~", dead-1-i)))
	}
	live := list(deleteOp("live", "livf"))
	for name, txn := range map[string]*pb.TxnRequest{
		"done": {Success: append(live, deletions...)}, "in the other branch": {Success: live, Failure: deletions},
		"nested": {Success: list(txnOp(live, deletions))},
	} {
		if _, err := kvs.Txn(waitContext(t), txn); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "compact first") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if r, err := c.Get(waitContext(t), "live"); err != nil || len(r.Kvs) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	if r, err := c.Delete(waitContext(t), "d", clientv3.WithPrefix()); err != nil || r.Deleted != 0 {
		t.Errorf("one deletion: got %v, %v", r, err)
	}
}
