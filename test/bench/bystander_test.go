package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// heldServer answers what a bystander asks as a test wants.
type heldServer struct {
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer
	put func(ctx context.Context, r *pb.PutRequest) error
	ttl int64 // of leases that are renewed; negative: their streams end
	// attacked has room for one that tells of calls that are no bystander's.
	attacked chan struct{}

	hung    map[int64]int // keys that transactions have put, by lease
	revoked []int64
	deleted []int // how many keys without a lease were put before each deletion
}

func (s *heldServer) noteAttack() {
	select {
	case s.attacked <- struct{}{}:
	default:
	}
}

func (s *heldServer) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	s.noteAttack()
	return &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Value: make([]byte, 1<<20)}}}, nil
}

func (s *heldServer) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	for _, op := range r.Success {
		s.hung[op.GetRequestPut().GetLease()]++
	}
	return &pb.TxnResponse{}, nil
}

func (s *heldServer) LeaseRevoke(_ context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	s.revoked = append(s.revoked, r.ID)
	return &pb.LeaseRevokeResponse{}, nil
}

func (s *heldServer) DeleteRange(context.Context, *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	s.deleted = append(s.deleted, s.hung[0])
	return &pb.DeleteRangeResponse{}, nil
}

func (s *heldServer) Put(ctx context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	if string(r.Key) != "bystander" {
		s.noteAttack()
		return &pb.PutResponse{}, nil
	}
	return &pb.PutResponse{}, s.put(ctx, r)
}

func (s *heldServer) LeaseGrant(context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return &pb.LeaseGrantResponse{}, nil
}

func (s *heldServer) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		if s.ttl < 0 {
			return errors.New("no keep-alive here")
		}
		if err := stream.Send(&pb.LeaseKeepAliveResponse{TTL: s.ttl}); err != nil {
			return err
		}
	}
}

// serveHeld serves until the test ends.
func serveHeld(t *testing.T, s *heldServer) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, s)
	pb.RegisterLeaseServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func watchHeld(t *testing.T, s *heldServer, length time.Duration) *fare {
	t.Helper()
	b, err := newBystander(t.Context(), serveHeld(t, s), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	return b.watch(t.Context(), length)
}

// TestBystander_watch_doesNotWait has a server that answers no put before ten are there: a client that waits for the first one
// never sends a second.
func TestBystander_watch_doesNotWait(t *testing.T) {
	const together = 10
	arrived := make(chan struct{}, together)
	f := watchHeld(t, &heldServer{ttl: 60, put: func(ctx context.Context, _ *pb.PutRequest) error {
		select {
		case arrived <- struct{}{}:
		default:
		}
		for len(arrived) < together {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
		return nil
	}}, 25*bystanderEvery)
	if f.puts.Count() != 25 || f.failed > 0 {
		t.Fatalf("%d puts, %d failed: %v; want 25, and none", f.puts.Count(), f.failed, f.said)
	}
	if longest := f.puts.Longest(); longest < (together-2)*bystanderEvery {
		t.Fatalf("the longest put took %s: the first one waited for %d more, one each %s", longest, together-1, bystanderEvery)
	}
	if f.renewals != 1 || f.unrenewed != 0 {
		t.Fatalf("%d renewals, %d failed: %v", f.renewals, f.unrenewed, f.said)
	}
}

func TestBystander_put_countsFromItsSchedule(t *testing.T) {
	s := &heldServer{put: func(context.Context, *pb.PutRequest) error { return nil }}
	b, err := newBystander(t.Context(), serveHeld(t, s), false)
	if err != nil {
		t.Fatal(err)
	}
	b.put(t.Context(), time.Now().Add(-time.Second)) // it begins late
	b.put(t.Context(), time.Now().Add(-time.Minute)) // so late that no goroutine waits for it any more
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	if f := &b.fare; f.failed != 1 || f.puts.Count() != 2 || f.puts.Quantile(0) < time.Second || f.puts.Longest() < time.Minute {
		t.Fatalf("%d of %d failed, %s to %s", f.failed, f.puts.Count(), f.puts.Quantile(0), f.puts.Longest())
	}
}

func TestBystander_watch_failures(t *testing.T) {
	for _, ttl := range []int64{0, -1} { // the lease has ended; the stream ends
		f := watchHeld(t, &heldServer{ttl: ttl, put: func(context.Context, *pb.PutRequest) error {
			return errors.New("not here")
		}}, 2*renewalEvery)
		if f.failed == 0 || uint64(f.failed) != f.puts.Count() {
			t.Errorf("%d puts failed, and %d times were recorded: a put that fails has a time, too", f.failed, f.puts.Count())
		}
		if f.renewals != 2 || f.unrenewed != 2 {
			t.Errorf("%d of %d renewals failed, want 2 of 2", f.unrenewed, f.renewals)
		}
	}
}
