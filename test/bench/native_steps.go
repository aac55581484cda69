package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // of bombs
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
)

const (
	unreadFor     = 3 * time.Second // that a stream of a native client is not read
	unreadRequest = 100_000         // bytes that a put of such a stream has
	unreadResult  = 30_000          // bytes that a transaction of such a stream reads: below what is counted by itself
	bombBytes     = 1_900_000       // that a call of 2 KB unpacks to
	deadKeys      = 20_000          // that are deleted again and again
	deadDeletions = 127             // of one transaction
)

// nativeSteps are the attacks of a fourth review: native streams that are not read, messages that unpack to very much, and
// deletions of what is deleted.
var nativeSteps = []holding{
	{name: "native streams that read no answers to large puts", step: unreadNative(largePut), callers: 16,
		fill: filling{keys: 1, bytes: unreadResult}},
	{name: "native streams that read no large answers", step: unreadNative(largeRead), callers: 16,
		fill: filling{keys: 1, bytes: unreadResult}},
	{name: "bombs: calls that unpack to very much", step: bomb, callers: 250},
	{name: "work: deletions of what is deleted", step: deleteDead, callers: 2},
}

// largePut is a large put, and a read of nothing, so that the result may have to be read by the request.
func largePut() *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{
		opOfPut(&pb.PutRequest{Key: []byte("q"), Value: make([]byte, unreadRequest)}),
		opOfRange(&pb.RangeRequest{Key: []byte("nobody")}),
	}}
}

// largeRead is a small put, and a read of the value of the filling.
func largeRead() *pb.TxnRequest {
	return &pb.TxnRequest{Success: []*pb.RequestOp{
		opOfPut(&pb.PutRequest{Key: []byte("q")}), opOfRange(&pb.RangeRequest{Key: keyOf(0)}),
	}}
}

// unreadNative opens a stream of a native client, proposes one transaction after the other, and reads no answer.
func unreadNative(txn func() *pb.TxnRequest) step {
	return func(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
		ctx, cancel := context.WithTimeout(ctx, unreadFor)
		defer cancel()
		stream, err := quoratepb.NewWriterClient(conn).Propose(ctx)
		if err != nil {
			return err
		}
		key := make([]byte, quoratepb.ClientKeyBytes)
		_, _ = rand.Read(key) // it does not fail
		open := &quoratepb.ProposeRequest{Key: key, Open: &quoratepb.OpenSession{}}
		if err := stream.Send(open); err != nil {
			return err
		}
		var session uint64
		for session == 0 {
			response, err := stream.Recv()
			switch opened := response.GetOpened(); {
			case err != nil:
				return err
			case opened.GetCode() != 0:
				return fmt.Errorf("no session: %s", opened.Message)
			default:
				session = opened.GetSession()
			}
		}
		request, err := proto.Marshal(txn())
		for sequence := uint64(1); err == nil; sequence++ {
			err = stream.Send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{{
				Session: session, Sequence: sequence, Kind: quoratepb.Proposal_KIND_TXN, Request: request,
			}}})
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // that time has passed
			return nil
		}
		return err
	}
}

// bomb is a range of a key of zeros, compressed.
func bomb(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
	_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: make([]byte, bombBytes)}, grpc.UseCompressor("gzip"))
	return err
}

// deleteDead fills a range and deletes it, and then deletes it again, 127 times in a transaction whose other branch is taken,
// or once.
func deleteDead(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	all := &pb.DeleteRangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd)}
	if i == 0 {
		f := filling{keys: deadKeys}
		if err := f.fillStore(ctx, kv, nil); err != nil {
			return err
		}
	}
	if i%2 == 0 {
		_, err := kv.DeleteRange(ctx, all)
		return err
	}
	txn := &pb.TxnRequest{Compare: []*pb.Compare{{Key: []byte("nobody"), Target: pb.Compare_MOD, Result: pb.Compare_GREATER}}}
	for range deadDeletions {
		txn.Failure = append(txn.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: all}})
	}
	_, err := kv.Txn(ctx, txn)
	return err
}
