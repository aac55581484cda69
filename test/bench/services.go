package main

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
)

const (
	waitLease   = 11 // whose key waits
	waitFor     = time.Second
	overwritten = 120     // keys of large values
	named       = 200_000 // keys below the name of a lock
)

// services are the attacks of a fifth review: on locks and elections, on compactions, and by what is written over large values.
var services = []holding{
	{name: "services: campaigns that wait", step: waitCampaign, callers: 3000, fill: filling{keys: 1, lease: workLease}},
	{name: "services: locks of a name with many keys", step: lockMany, callers: 64, fill: filling{keys: named}},
	{name: "services: leaders of a name with many keys", step: leaderMany, callers: 64, fill: filling{keys: named}},
	{name: "services: physical compactions", step: compactStep, callers: 64,
		fill: filling{keys: 20_000, bytes: 100, rounds: 5}},
	{name: "services: large values overwritten at once", step: overwriteLarge, callers: 1,
		fill: filling{keys: overwritten, bytes: large}, p99: 500 * time.Millisecond, because: "reading what they replace " +
			"holds up what is applied, a known gap"},
	{name: "services: large values deleted under watches", step: deleteWatched, callers: 8,
		fill: filling{keys: 22, bytes: large}, p99: readsP99, because: readsMuch},
}

// waitCampaign campaigns for 5 s with 30 kB against who holds the name.
func waitCampaign(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*waitFor)
	defer cancel()
	if i == 0 { // the others fail until it is there
		_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: waitLease, TTL: 3600})
		return err
	}
	_, err := v3electionpb.NewElectionClient(conn).Campaign(ctx,
		&v3electionpb.CampaignRequest{Name: []byte("work"), Lease: waitLease, Value: make([]byte, 30_000)})
	return passed(err)
}

// passed makes no error of it that the time of a call has passed.
func passed(err error) error {
	if status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Canceled {
		return nil
	}
	return err
}

// lockMany asks for a lock by one of 64 leases. They wait for each other, and for the keys of the filling.
func lockMany(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	ctx, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	id := 1000 + i%64
	if i < 64 {
		_, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: 3600})
		return passed(err)
	}
	_, err := v3lockpb.NewLockClient(conn).Lock(ctx, &v3lockpb.LockRequest{Name: []byte("work"), Lease: id})
	return passed(err)
}

// leaderMany asks for the oldest of these keys.
func leaderMany(ctx context.Context, conn *grpc.ClientConn, _ int64) error {
	_, err := v3electionpb.NewElectionClient(conn).Leader(ctx, &v3electionpb.LeaderRequest{Name: []byte("work")})
	return passed(err)
}

// compactStep puts, and compacts up to there.
func compactStep(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	put, err := kv.Put(ctx, &pb.PutRequest{Key: keyOf(int(i % 100)), Value: []byte("x")})
	if err != nil {
		return err
	}
	_, err = kv.Compact(ctx, &pb.CompactionRequest{Revision: put.Header.Revision, Physical: true})
	if status.Code(err) == codes.OutOfRange { // another one was faster
		err = nil
	}
	return err
}

// overwriteLarge puts small values in the place of many large ones at once, and then the large ones again.
func overwriteLarge(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	if n := i % (overwritten + 1); n > 0 {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: keyOf(int(n - 1)), Value: make([]byte, large)})
		return err
	}
	txn := &pb.TxnRequest{}
	for n := range overwritten {
		txn.Success = append(txn.Success, opOfPut(&pb.PutRequest{Key: keyOf(n)}))
	}
	_, err := kv.Txn(ctx, txn)
	return err
}

// deleteWatched deletes large values while they are watched, and puts them again.
func deleteWatched(ctx context.Context, conn *grpc.ClientConn, i int64) error {
	kv := pb.NewKVClient(conn)
	const keys = 22
	if n := i % (keys + 2); n > 1 {
		_, err := kv.Put(ctx, &pb.PutRequest{Key: keyOf(int(n - 2)), Value: make([]byte, large)})
		return err
	} else if n == 0 {
		ctx, cancel := context.WithTimeout(ctx, oldFor)
		defer cancel()
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		if err == nil {
			err = stream.Send(created(&pb.WatchCreateRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd), PrevKv: true}))
		}
		for err == nil {
			_, err = stream.Recv()
		}
		return passed(err)
	}
	_, err := kv.DeleteRange(ctx, &pb.DeleteRangeRequest{Key: []byte(workPrefix), RangeEnd: []byte(workEnd)})
	return err
}

// created is the request for a watch.
func created(c *pb.WatchCreateRequest) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: c}}
}
