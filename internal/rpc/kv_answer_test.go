package rpc_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/rpc"
)

// fillMiB puts n values of a MiB under big/.
func fillMiB(t *testing.T, c *clientv3.Client, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Put(waitContext(t), fmt.Sprintf("big/%03d", i), string(make([]byte, 1<<20))); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that a small transaction with a huge answer is executed, and answered by an error that says so, at a bounded cost.
func TestServices_txn_answer_too_large(t *testing.T) {
	s := serveMember(t, nil)
	c := s.client(t)
	fillMiB(t, c, 4)
	ops := []clientv3.Op{clientv3.OpPut("x", "1")}
	for range 127 {
		ops = append(ops, clientv3.OpGet("big/", clientv3.WithPrefix()))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.Txn(waitContext(t)).Then(ops...).Commit()
	runtime.ReadMemStats(&after)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("an answer of 508 MiB: %v", err)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 320 {
		t.Errorf("it took %d MiB", took)
	}
	got, err := c.Get(waitContext(t), "x")
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("it was not executed: %v %v", got, err)
	}
	if _, err := c.Txn(waitContext(t)).Then(ops[1:]...).Commit(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("without the put: %v", err)
	}
	some, err := c.Txn(waitContext(t)).Then(ops[:4]...).Commit()
	if err != nil || len(some.Responses) != 4 || len(some.Responses[3].GetResponseRange().Kvs) != 4 {
		t.Errorf("an answer of 12 MiB: %v", err)
	}
}

// Ensure that concurrent large ranges share the memory for answers, and give it back.
func TestServices_range_answers_share_memory(t *testing.T) {
	budget := answers.New(24<<20, 7<<20)
	s := serveMember(t, func(o *rpc.Options) { o.Answers = budget })
	c := s.client(t)
	fillMiB(t, c, 8)
	_, err := c.Get(waitContext(t), "big/", clientv3.WithPrefix())
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("8 MiB where one may have 7: %v", err)
	}
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			got, err := c.Get(waitContext(t), "big/", clientv3.WithPrefix(), clientv3.WithLimit(5))
			if err != nil || len(got.Kvs) != 5 {
				t.Errorf("5 MiB: %v", err)
			}
		})
	}
	group.Wait()
	for budget.UsedBytes() != 0 { // the last buffer is freed once it is sent
		<-time.After(time.Millisecond)
	}
	kvs := 0
	stream, err := pb.NewKVClient(s.conn(t)).RangeStream(waitContext(t),
		&pb.RangeRequest{Key: []byte("big/"), RangeEnd: []byte("big0")})
	for err == nil {
		var chunk *pb.RangeStreamResponse
		if chunk, err = stream.Recv(); err == nil {
			kvs += len(chunk.RangeResponse.Kvs)
		}
	}
	if kvs != 8 {
		t.Errorf("a stream has %d keys: %v", kvs, err)
	}
}

// Ensure that a range in a transaction at a negative revision is refused as etcd refuses it, reading or writing.
func TestServices_txn_negative_revision(t *testing.T) {
	s := serveMember(t, nil)
	c := s.client(t)
	for range 4 {
		if _, err := c.Put(waitContext(t), "k", "v"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Compact(waitContext(t), 4); err != nil {
		t.Fatal(err)
	}
	for rev, want := range map[int64]error{
		-1: rpctypes.ErrGRPCCompacted, -7: rpctypes.ErrGRPCCompacted, 3: rpctypes.ErrGRPCCompacted, 0: nil, 4: nil, 5: nil,
		99: rpctypes.ErrGRPCFutureRev,
	} {
		read := &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{
			Key: []byte("k"), Revision: rev,
		}}}
		write := &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte("w")}}}
		for _, ops := range [][]*pb.RequestOp{{read}, {write, read}} {
			_, err := pb.NewKVClient(s.conn(t)).Txn(waitContext(t), &pb.TxnRequest{Success: ops})
			if status.Code(err) != status.Code(want) || want != nil && err.Error() != want.Error() {
				t.Errorf("%d operations, revision %d: %v, want %v", len(ops), rev, err, want)
			}
		}
	}
}
