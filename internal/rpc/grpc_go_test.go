package rpc_test

import (
	"bytes"
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// Ensure that services behave the same with --grpc-transport=grpc-go. With -grpc-go all tests of this package check that; these
// are the ones that use most of a transport.
func TestServices_grpcGo(t *testing.T) {
	defer func(before bool) { *library = before }(*library)
	*library = true
	for name, test := range map[string]func(*testing.T){
		"writes":               TestKV_Put_thenGetDeleteAndHeaders,
		"requests are checked": TestKV_requests_areChecked,
		"a large put":          TestKV_Put_tooLarge,
		"transactions":         TestKV_Txn_evaluatesOnMember,
		"too many parts":       TestServices_txn_tooManyParts,
		"bytes that are wrong": TestServices_wrongRequests_bytes,
		"chunks":               TestKV_RangeStream_chunksAddUpToTheRange,
		"half-sent":            TestServer_halfSentRequest,
		"headers":              TestServices_headers,
		"a leader is required": TestGate_requireLeader,
		"watches":              TestWatch_Events_ofManyWatchersAndFilters,
		"a watch is cancelled": TestWatch_streamEndsAsCanceled,
		"keep-alives":          TestLease_KeepAlive_answersInOrder,
		"answers unread":       TestServices_answersUnread,
		"native, unread":       TestServices_Propose_unread,
		"users":                TestAuth_watchEndsWithThePermission,
		"ranges of one key":    TestServices_rangeOfOneKey,
		"writes or reads":      TestServices_writeOrRead,
	} {
		t.Run(name, test)
	}
}

// silentBackend answers no writes, and signals which were abandoned.
type silentBackend struct {
	*machineBackend
	proposed  chan struct{}
	abandoned chan struct{}
}

func (b *silentBackend) ProposeAsync(*kv.Command, proposals.Completion) (func() bool, error) {
	b.proposed <- struct{}{}
	return func() bool {
		b.abandoned <- struct{}{}
		return true
	}, nil
}

func (b *silentBackend) ReadAsync(done proposals.Completion) (func() bool, error) {
	return b.ProposeAsync(nil, done)
}

// Ensure that a write and a read without an answer are abandoned, and counted, when the client gives them up. (grpc-go ends
// their contexts.)
func TestServices_hangUp(t *testing.T) {
	if *library {
		t.Skip("calls of the library have a goroutine each")
	}
	backend := &silentBackend{newMachineBackend(t), make(chan struct{}, 1), make(chan struct{}, 1)}
	s := serve(t, backend, nil)
	client := pb.NewKVClient(s.conn(t))
	giveUp := func(call func(ctx context.Context) error, begun, over string) {
		t.Helper()
		ctx, cancel := context.WithCancel(waitContext(t))
		ended := make(chan error)
		go func() { ended <- call(ctx) }()
		<-backend.proposed
		s.awaitMetric(t, begun)
		cancel()
		if err := <-ended; status.Code(err) != codes.Canceled {
			t.Errorf("got %v", err)
		}
		<-backend.abandoned
		s.awaitMetric(t, over)
	}
	giveUp(func(ctx context.Context) error {
		_, err := client.Put(ctx, &pb.PutRequest{Key: []byte("k")})
		return err
	}, "etcd_server_proposals_pending 1", "etcd_server_proposals_pending 0")
	ranges := func(name, code string) string {
		return "grpc_server_" + name + `_total{` + code + `grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1`
	}
	giveUp(func(ctx context.Context) error {
		_, err := client.Range(ctx, &pb.RangeRequest{Key: []byte("k")})
		return err
	}, ranges("started", ""), ranges("handled", `grpc_code="Canceled",`))
}

// Ensure that a range without a goroutine returns the same as one that gets a goroutine because it is too large.
func TestServices_rangeOfOneKey(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, nil)
	client := pb.NewKVClient(s.conn(t))
	for _, size := range []int{0, 1, 16 << 10, 1 << 20} {
		put := &pb.PutRequest{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), size)}
		if _, err := client.Put(waitContext(t), put); err != nil {
			t.Fatal(err)
		}
		got, err := client.Range(waitContext(t), &pb.RangeRequest{Key: put.Key})
		if err != nil || len(got.Kvs) != 1 || !bytes.Equal(got.Kvs[0].Value, put.Value) || got.Header.Revision == 0 {
			t.Fatalf("%d bytes: got %.100v, %v", size, got, err)
		}
	}
	if _, err := client.Compact(waitContext(t), &pb.CompactionRequest{Revision: 3}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*pb.RangeRequest{
		"compacted": {Key: []byte("k"), Revision: 1}, "future": {Key: []byte("k"), Revision: 1000}, "empty": {},
	} {
		_, got := client.Range(waitContext(t), r)
		r.Serializable = true
		if _, want := client.Range(waitContext(t), r); got == nil || got.Error() != want.Error() {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	backend.lead(consensus.NoMember)
	if _, err := client.Range(waitContext(t), &pb.RangeRequest{Key: []byte("k")}); err == nil ||
		err.Error() != rpctypes.ErrGRPCTimeout.Error() {
		t.Errorf("without a leader: got %v", err)
	}
}

// Ensure the results of transactions that put a key, or read it if it has changed, as Kubernetes sends them.
func TestServices_writeOrRead(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	client := pb.NewKVClient(s.conn(t))
	key := []byte("k")
	revision := int64(0)
	for _, size := range []int{0, 1, 100 << 10, 1 << 20} {
		value := bytes.Repeat([]byte("v"), size)
		txn := &pb.TxnRequest{
			Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision}}},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: key, Value: value}}}},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
		}
		put, err := client.Txn(waitContext(t), txn)
		if err != nil || !put.Succeeded || len(put.Responses) != 1 {
			t.Fatalf("%d bytes: got %v, %v", size, put, err)
		}
		revision = put.Header.Revision
		got, err := client.Txn(waitContext(t), txn)
		if err != nil || got.Succeeded || len(got.Responses) != 1 {
			t.Fatalf("%d bytes: got %.100v, %v", size, got, err)
		}
		read := got.Responses[0].GetResponseRange().GetKvs()
		if len(read) != 1 || read[0].ModRevision != revision || !bytes.Equal(read[0].Value, value) {
			t.Fatalf("%d bytes: read %.100v", size, read)
		}
	}
	s.awaitMetric(t, "quorate_answer_memory_bytes 0")
}
