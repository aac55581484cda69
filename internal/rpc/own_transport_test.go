package rpc_test

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/proposals"
)

// Ensure that services are by --grpc-transport=quorate what they are behind grpc-go. With -own-transport all tests of this
// package ask that; here are those that see most of a transport.
func TestServices_ownTransport(t *testing.T) {
	defer func(before bool) { *ownTransport = before }(*ownTransport)
	*ownTransport = true
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
		"calls that hang up":   hangUp,
	} {
		t.Run(name, test)
	}
}

// silentBackend answers no writes, and tells which were abandoned.
type silentBackend struct {
	*machineBackend
	proposed  chan struct{}
	abandoned chan struct{}
}

func (b *silentBackend) ProposeThen(*kv.Command, proposals.Completion) (func() bool, error) {
	b.proposed <- struct{}{}
	return func() bool {
		b.abandoned <- struct{}{}
		return true
	}, nil
}

// hangUp has a client give up a write that does not end: it is abandoned, and counted.
func hangUp(t *testing.T) {
	backend := &silentBackend{newMachineBackend(t), make(chan struct{}, 1), make(chan struct{}, 1)}
	s := serve(t, backend, nil)
	ctx, cancel := context.WithCancel(waitContext(t))
	ended := make(chan error)
	go func() {
		_, err := pb.NewKVClient(s.conn(t)).Put(ctx, &pb.PutRequest{Key: []byte("k")})
		ended <- err
	}()
	<-backend.proposed
	s.awaitMetric(t, "etcd_server_proposals_pending 1")
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	<-backend.abandoned
	s.awaitMetric(t, "etcd_server_proposals_pending 0")
}
