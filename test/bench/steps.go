package main

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	leaseKeys  = 100_000 // that hang on the first lease; its end takes seconds
	roundKeys  = 20_000  // that hang on each of the others
	deleteKeys = 20_000  // more of that length are refused
	sortKeys   = 60      // of sortBytes each
	sortBytes  = 1_000_000
	oldWatches = 500 // of one stream
	oldFor     = 2 * time.Second
)

// stepping are attacks whose callers do more than one thing.
var stepping = []holding{
	{name: "work: the ends of large leases", step: endLeases, fill: filling{keys: leaseKeys, lease: workLease}, callers: 1},
	{name: "work: deletions of many keys", step: deleteKeysAgain, fill: filling{keys: deleteKeys}, callers: 1},
	{name: "work: ranges that are sorted by large values", step: sortLarge, fill: filling{keys: sortKeys, bytes: sortBytes},
		callers: 16},
	{name: "work: old watches whose filters let nothing through", step: watchFiltered,
		fill: filling{keys: 20, bytes: 2000, rounds: 2000}, callers: 4},
	{name: "work: deletions that return large values", step: deletePrevious, fill: filling{keys: 100, bytes: sortBytes},
		callers: 16, p99: 300 * time.Millisecond, because: "reading what they delete holds up what is applied, a known gap"},
	{name: "work: nested transactions that return large values", step: nestPrevious,
		fill: filling{keys: 120, bytes: sortBytes}, callers: 16, p99: time.Second, because: keptGap},
}

// endLeases ends the lease of the filling, and then one after the other that it grants and fills itself.
func endLeases(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	leases, id := pb.NewLeaseClient(conn), workLease+i
	if i > 0 {
		f := filling{keys: roundKeys, lease: id}
		if err := f.fillStore(ctx, pb.NewKVClient(conn), leases); err != nil {
			return err
		}
	}
	_, err := leases.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
	return err
}

// deleteKeysAgain deletes the keys of the filling, and puts them before it does so again.
func deleteKeysAgain(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	if i > 0 {
		f := filling{keys: deleteKeys}
		if err := f.fillStore(ctx, kv, nil); err != nil {
			return err
		}
	}
	_, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd)})
	return err
}

// sortLarge asks for the last one of up to 40 large values by each of the five orders.
func sortLarge(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(workPrefix), RangeEnd: keyOf(int(1 + i%40)),
		SortTarget: pb.RangeRequest_SortTarget(i % 5), SortOrder: pb.RangeRequest_DESCEND, Limit: 1})
	return err
}

// watchFiltered has a stream of watches read the past for events that their filters all refuse.
func watchFiltered(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
	ctx, cancel := context.WithTimeout(ctx, oldFor)
	defer cancel()
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err != nil {
		return err
	}
	for i := range oldWatches {
		create := &pb.WatchCreateRequest{Key: keyOf(i % 20), RangeEnd: fmt.Appendf(nil, "%s%d", workEnd, i),
			StartRevision: int64(2 + 3*i), PrevKv: true,
			Filters: []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NOPUT, pb.WatchCreateRequest_NODELETE}}
		if err := stream.Send(&pb.WatchRequest{
			RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create}}); err != nil {
			break // the answer says why
		}
	}
	for {
		if _, err := stream.Recv(); err != nil {
			if status.Code(err) == codes.DeadlineExceeded { // that time has passed
				return nil
			}
			return err
		}
	}
}

// deletePrevious puts large values, and deletes ten of them or all every fourth time. Both return what was there, if it is not
// too much for an answer.
func deletePrevious(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	if i%4 != 0 {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: keyOf(int(i % 50)), Value: make([]byte, sortBytes), PrevKv: true})
		return err
	}
	end := keyOf(10)
	if i%8 == 0 {
		end = []byte(workEnd)
	}
	_, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(workPrefix), RangeEnd: end, PrevKv: true})
	return err
}

// nestPrevious keeps 120 large values, or 10, in a transaction within another one, which returns them.
func nestPrevious(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	keys := 120
	if i%2 == 0 {
		keys = 10
	}
	inner := &pb.TxnRequest{Success: keepingOps(keys)}
	outer := &pb.TxnRequest{Success: []*pb.RequestOp{opOfTxn(&pb.TxnRequest{Success: []*pb.RequestOp{opOfTxn(inner)}})}}
	_, err := pb.NewKVClient(conn).Txn(ctx, outer)
	return err
}
