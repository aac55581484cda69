package rpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/kv"
)

func TestLease_life(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	short, err := c.Grant(ctx, -5)
	if err != nil {
		t.Fatal(err)
	}
	if short.TTL != 2 || short.ID <= 0 || short.Revision != 1 {
		t.Errorf("grant of -5 s: got %v, want TTL 2, a positive id and revision 1", short)
	}
	lease, err := c.Grant(ctx, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"b", "a"} {
		if _, err := c.Put(ctx, key, "", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := c.KeepAliveOnce(ctx, lease.ID)
	if err != nil || alive.TTL != 100 || alive.Revision != 3 {
		t.Errorf("keep alive: got %v, %v; want TTL 100 at revision 3", alive, err)
	}
	left, err := c.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
	if err != nil || left.GrantedTTL != 100 || left.TTL < 98 || left.TTL > 100 || len(left.Keys) != 2 ||
		string(left.Keys[0]) != "a" {
		t.Errorf("time to live: got %v, %v; want nearly 100 of 100 s and keys a, b", left, err)
	}
	if leases, err := c.Leases(ctx); err != nil || len(leases.Leases) != 2 || leases.Leases[1].ID != lease.ID {
		t.Errorf("leases: got %v, %v; want both, the longer one last", leases, err)
	}
	revoked, err := c.Revoke(ctx, lease.ID)
	if err != nil || revoked.Header.Revision != 4 {
		t.Errorf("revoke: got %v, %v; want revision 4", revoked, err)
	}
	if get, err := c.Get(ctx, "a"); err != nil || get.Count != 0 {
		t.Errorf("get after revocation: got %v, %v; want nothing", get, err)
	}
	if _, err := c.Revoke(ctx, lease.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("second revoke: got %v, want %v", err, rpctypes.ErrLeaseNotFound)
	}
	if left, err := c.TimeToLive(ctx, lease.ID); err != nil || left.TTL != -1 {
		t.Errorf("time to live of a revoked lease: got %v, %v; want TTL -1", left, err)
	}
	if _, err := c.KeepAliveOnce(ctx, lease.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("keep alive of a revoked lease: got %v, want %v", err, rpctypes.ErrLeaseNotFound)
	}
}

func TestLease_Grant_refusals(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.ElectionTimeout = 2500 * time.Millisecond })
	client, ctx := pb.NewLeaseClient(s.conn(t)), waitContext(t)
	if r, err := client.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: -7, TTL: 1}); err != nil || r.ID != -7 || r.TTL != 4 {
		t.Errorf("negative id: got %v, %v; want id -7 with one and a half election timeouts, rounded up", r, err)
	}
	for _, row := range []struct {
		name    string
		request *pb.LeaseGrantRequest
		want    error
	}{
		{"an id in use", &pb.LeaseGrantRequest{ID: -7, TTL: 10}, rpctypes.ErrGRPCLeaseExist},
		{"a TTL beyond the limit", &pb.LeaseGrantRequest{TTL: 9_000_000_001}, rpctypes.ErrGRPCLeaseTTLTooLarge},
		{"the longest TTL", &pb.LeaseGrantRequest{TTL: 9_000_000_000}, nil},
	} {
		if _, err := client.LeaseGrant(ctx, row.request); rpctypes.ErrorDesc(err) != rpctypes.ErrorDesc(row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}

func TestLease_KeepAlive_answersInOrder(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	client, ctx := pb.NewLeaseClient(s.conn(t)), waitContext(t)
	if _, err := client.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 1, TTL: 10}); err != nil {
		t.Fatal(err)
	}
	stream, err := client.LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(i % 3)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if i%3 == 1 {
			want = 10
		}
		if r.ID != int64(i%3) || r.TTL != want || r.Header.Revision != 1 {
			t.Errorf("answer %d: got %v, want id %d with TTL %d", i, r, i%3, want)
		}
	}
}

// lateBackend is a follower: what was acknowledged last is applied only once somebody asks for a linearizable read.
type lateBackend struct {
	*machineBackend
	late []kv.Command
}

func (b *lateBackend) ReadIndex(ctx context.Context) error {
	for i := range b.late {
		if _, err := b.Propose(ctx, &b.late[i]); err != nil {
			return err
		}
	}
	b.late = nil
	return nil
}

// The keys of a lease are read at this member, so it must have applied what the leader knew when it told the TTL.
func TestLease_TimeToLive_keysAreNotStale(t *testing.T) {
	backend := &lateBackend{machineBackend: newMachineBackend(t)}
	ctx := waitContext(t)
	grant := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 7, TTLSeconds: 100}}
	if _, err := backend.Propose(ctx, &grant); err != nil {
		t.Fatal(err)
	}
	backend.late = []kv.Command{{Put: &kv.PutOp{Key: []byte("k"), Lease: 7}}}
	c := serve(t, backend, nil).client(t)
	left, err := c.TimeToLive(ctx, 7, clientv3.WithAttachedKeys())
	if err != nil || len(left.Keys) != 1 || left.Revision != 2 {
		t.Errorf("got %v, %v; want the key that was attached before, at revision 2", left, err)
	}
}

// Leases fill memory and disk of every member, so they count against the quota as keys do.
func TestLease_Grant_countsAgainstQuota(t *testing.T) {
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.QuotaBytes = 16 << 10 })
	c, ctx := s.client(t), waitContext(t)
	granted := 0
	for ; granted < 1000; granted++ {
		if _, err := c.Grant(ctx, 100); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if granted < 10 || granted == 1000 {
		t.Errorf("%d leases were granted within 16 KiB", granted)
	}
}
