package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/answers"
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

// lateBackend is a follower: it applies the last acknowledged entries only for a linearizable read.
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

// The keys of a lease are read at this member, so it must have applied the leader's state at the time of the TTL.
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

// Leases use memory and disk of every member, so they count against the quota as keys do.
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

// renewingBackend notes how many leases are renewed at once. While held is not nil, renewals wait for it.
type renewingBackend struct {
	*machineBackend
	held chan struct{}
	mu   sync.Mutex
	asks [][]kv.LeaseID
}

func (b *renewingBackend) RenewLeases(ctx context.Context, ids []kv.LeaseID) ([]lease.Renewal, error) {
	b.mu.Lock()
	b.asks = append(b.asks, slices.Clone(ids))
	b.mu.Unlock()
	select {
	case <-b.held:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return b.machineBackend.RenewLeases(ctx, ids)
}

// Renewals that come while the leader handles others are sent together, at most maxRenewals at once, and are answered in their
// order.
func TestLease_KeepAlive_batches(t *testing.T) {
	const leases = 2000
	backend := &renewingBackend{machineBackend: newMachineBackend(t), held: make(chan struct{})}
	s, ctx := serve(t, backend, nil), waitContext(t)
	for id := kv.LeaseID(1); id <= leases; id++ {
		grant := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 100}}
		if _, err := backend.Propose(ctx, &grant); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := pb.NewLeaseClient(s.conn(t)).LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(leases) {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	close(backend.held)
	for id := range int64(leases) {
		if r, err := stream.Recv(); err != nil || r.ID != id+1 || r.TTL != 100 {
			t.Fatalf("answer %d: got %v, %v", id+1, r, err)
		}
	}
	most := 0
	for _, ids := range backend.asks {
		most = max(most, len(ids))
	}
	if most < 2 || most > 256 || len(backend.asks) > leases/2 {
		t.Errorf("%d renewals are asked in %d questions of at most %d", leases, len(backend.asks), most)
	}
}

// An expired lease that is not revoked yet delays the answers behind it, but those leases stay alive meanwhile.
func TestLease_KeepAlive_behindAnExpiredLease(t *testing.T) {
	backend := newMachineBackend(t)
	s, ctx := serve(t, backend, nil), waitContext(t)
	for id := kv.LeaseID(1); id <= 3; id++ {
		grant := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 100}}
		if _, err := backend.Propose(ctx, &grant); err != nil {
			t.Fatal(err)
		}
	}
	leases, now := backend.machine.Leases(), time.Now()
	leases.Expired(now, 10, 10) // begins to count down
	later := now.Add(99 * time.Second)
	if _, err := leases.RenewAll([]kv.LeaseID{1, 3}, later); err != nil {
		t.Fatal(err)
	}
	if due := leases.Expired(now.Add(101*time.Second), 10, 10); !slices.Equal(due, []kv.LeaseID{2}) {
		t.Fatalf("%v are due, want 2", due)
	}
	stream, err := pb.NewLeaseClient(s.conn(t)).LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for id := range int64(3) {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range []int64{100, 0, 100} {
		r, err := stream.Recv()
		if err != nil || r.ID != int64(id)+1 || r.TTL != want {
			t.Fatalf("answer %d: got %v, %v; want TTL %d", id+1, r, err, want)
		}
		if id == 0 {
			if _, err := backend.Propose(ctx, &kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 2}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Lists of leases and of their keys are refused if they exceed the bound of an answer.
func TestLease_lists_bounded(t *testing.T) {
	if testing.Short() {
		t.Skip("its calls come one after the other, and take long under the race detector")
	}
	const most, leases, keys = 256 << 10, 6_000, 200
	budget := answers.New(0, most)
	backend := newMachineBackend(t)
	s, ctx := serve(t, backend, func(o *rpcOptions) { o.Answers = budget }), waitContext(t)
	propose := func(command kv.Command) {
		if result, err := backend.Propose(ctx, &command); err != nil || result.Err != nil {
			t.Fatal(err, result.Err)
		}
	}
	next := kv.LeaseID(0)
	grant := func(n int) {
		for range n {
			next++
			propose(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: next, TTLSeconds: 100}})
		}
	}
	attach := func(n int) {
		for i := range n {
			propose(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(bytes.Repeat([]byte("k"), 1000), "%d/%d", n, i), Lease: 1}})
		}
	}
	c := s.client(t)
	for _, row := range []struct {
		leases, keys int
		refused      bool
	}{{leases, keys, false}, {leases, keys, true}} {
		grant(row.leases)
		attach(row.keys)
		list, listErr := c.Leases(ctx)
		left, leftErr := c.TimeToLive(ctx, 1, clientv3.WithAttachedKeys())
		for what, err := range map[string]error{"leases": listErr, "keys": leftErr} {
			if refused := status.Code(err) == codes.ResourceExhausted; refused != row.refused || err != nil && !refused {
				t.Errorf("%s: got %v, want refused %t", what, err, row.refused)
			}
		}
		if !row.refused && (len(list.Leases) != leases || len(left.Keys) != keys) {
			t.Errorf("%d leases and %d keys, want %d and %d", len(list.Leases), len(left.Keys), leases, keys)
		}
		attach(row.keys + 50) // more keys
	}
	if _, err := c.TimeToLive(ctx, 1); err != nil {
		t.Errorf("without keys: %v", err)
	}
}
