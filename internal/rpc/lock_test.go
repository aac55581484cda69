package rpc_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/v3electionpb"
	"github.com/quorate/quorate/api/v3lockpb"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/lockapi"
)

// locks is a server with clients of the two services.
type locks struct {
	*server
	ctx   context.Context
	etcd  *clientv3.Client
	locks v3lockpb.LockClient
}

func newLocks(t *testing.T) *locks {
	t.Helper()
	s := serve(t, newMachineBackend(t), nil)
	etcd := s.client(t)
	return &locks{server: s, ctx: waitContext(t), etcd: etcd, locks: v3lockpb.NewLockClient(etcd.ActiveConnection())}
}

func (l *locks) lease(t *testing.T) int64 {
	t.Helper()
	granted, err := l.etcd.Grant(l.ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	return int64(granted.ID)
}

// locked is the result of a call of Lock.
type locked struct {
	key string
	err error
}

// lock calls Lock, which may wait.
func (l *locks) lock(ctx context.Context, lease int64) <-chan locked {
	answered := make(chan locked, 1)
	go func() {
		r, err := l.locks.Lock(ctx, &v3lockpb.LockRequest{Name: []byte("n"), Lease: lease})
		answered <- locked{string(r.GetKey()), err}
	}()
	return answered
}

func (l *locks) awaitWaiting(t *testing.T, n string) {
	t.Helper()
	l.awaitMetric(t, `quorate_costly_calls{call="lock"} `+n)
}

func (l *locks) unlock(t *testing.T, key string) {
	t.Helper()
	if _, err := l.locks.Unlock(l.ctx, &v3lockpb.UnlockRequest{Key: []byte(key)}); err != nil {
		t.Fatal(err)
	}
}

// keys are all existing keys, in the order of their creation.
func (l *locks) keys(t *testing.T) string {
	t.Helper()
	found, err := l.etcd.Get(l.ctx, "", clientv3.WithFromKey(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, pair := range found.Kvs {
		keys = append(keys, string(pair.Key))
	}
	return strings.Join(keys, " ")
}

func wantStatus(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if s := status.Convert(err); s.Code() != code || s.Message() != text {
		t.Errorf("%s: got %v %q, want %v %q", what, s.Code(), s.Message(), code, text)
	}
}

// Ensure that callers get a lock in the order in which they came, that a caller that gives up leaves the queue, and that a
// caller whose lease was lost while it waited gets an error.
func TestLock_Lock_order(t *testing.T) {
	l := newLocks(t)
	first := <-l.lock(l.ctx, l.lease(t))
	if first.err != nil {
		t.Fatal(first.err)
	}
	second := l.lock(l.ctx, l.lease(t))
	l.awaitWaiting(t, "1")
	lost := l.lease(t)
	third := l.lock(l.ctx, lost)
	l.awaitWaiting(t, "2")
	leaving, leave := context.WithCancel(l.ctx)
	fourth := l.lock(leaving, l.lease(t))
	l.awaitWaiting(t, "3")

	if _, err := l.etcd.Revoke(l.ctx, clientv3.LeaseID(lost)); err != nil {
		t.Fatal(err)
	}
	leave()
	wantStatus(t, "who gave up", (<-fourth).err, codes.Canceled, "context canceled")
	l.awaitWaiting(t, "2")
	l.unlock(t, first.key)
	got := <-second
	if got.err != nil || l.keys(t) != got.key {
		t.Errorf("the second got %v; the keys are %s", got, l.keys(t))
	}
	l.unlock(t, got.key)
	wantStatus(t, "who lost its lease", (<-third).err, codes.Unknown, "mutex: session is expired")
	l.awaitWaiting(t, "0")
}

// Ensure that errors are those of etcd 3.7.1, in text and code, as observed there.
func TestLock_errors(t *testing.T) {
	l := newLocks(t)
	_, err := l.locks.Lock(l.ctx, &v3lockpb.LockRequest{Name: []byte("n"), Lease: 999})
	wantStatus(t, "an unknown lease", err, codes.Unknown, "etcdserver: requested lease not found")
	_, err = l.locks.Unlock(l.ctx, &v3lockpb.UnlockRequest{})
	wantStatus(t, "no key", err, codes.Unknown, "etcdserver: key is not provided")
	own, err := l.locks.Lock(l.ctx, &v3lockpb.LockRequest{})
	if err != nil || !strings.HasPrefix(string(own.Key), "/") {
		t.Errorf("a lock without a name: got %v, %v", own, err)
	}
	lease := l.lease(t)
	once := <-l.lock(l.ctx, lease)
	if again := <-l.lock(l.ctx, lease); again != once {
		t.Errorf("the owner locks again: got %v, want %v", again, once)
	}
}

// Ensure that a caller beyond the bound is refused, and leaves no key behind.
func TestStore_awaitTurn_bounded(t *testing.T) {
	l := newLocks(t)
	first := <-l.lock(l.ctx, l.lease(t))
	full := lockapi.NewLock(lockapi.NewStore(l.conn(t), admission.NewHostBound(0, 0)))
	_, err := full.Lock(l.ctx, &v3lockpb.LockRequest{Name: []byte("n"), Lease: l.lease(t)})
	if status.Code(err) != codes.ResourceExhausted || l.keys(t) != first.key {
		t.Errorf("got %v; the keys are %s", err, l.keys(t))
	}
}

// compacting is a connection on which the history is compacted just before the first stream begins.
type compacting struct {
	grpc.ClientConnInterface
	compact func()
	once    sync.Once
}

func (c *compacting) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	c.once.Do(c.compact)
	return c.ClientConnInterface.NewStream(ctx, desc, method, options...)
}

// Ensure that a waiting caller reads again when the history of its watch is compacted.
func TestStore_awaitTurn_compacted(t *testing.T) {
	l := newLocks(t)
	first := <-l.lock(l.ctx, l.lease(t))
	compacted := make(chan error, 1)
	conn := &compacting{ClientConnInterface: l.conn(t), compact: func() {
		_, err := l.etcd.Put(l.ctx, "z", "1")
		if put, failed := l.etcd.Put(l.ctx, "z", "2"); failed == nil {
			_, err = l.etcd.Compact(l.ctx, put.Header.Revision)
		}
		compacted <- err
	}}
	waiting := lockapi.NewLock(lockapi.NewStore(conn, admission.NewHostBound(1, 1)))
	answered := make(chan error, 1)
	go func() {
		_, err := waiting.Lock(l.ctx, &v3lockpb.LockRequest{Name: []byte("n"), Lease: 0})
		answered <- err
	}()
	if err := <-compacted; err != nil {
		t.Fatal(err)
	}
	l.unlock(t, first.key)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Ensure that locks and elections make their calls with the caller's credentials.
func TestAuth_locks(t *testing.T) {
	s, _, alice, nobody := secured(t)
	ctx := waitContext(t)
	own, foreign := &v3lockpb.LockRequest{Name: []byte("a1")}, &v3lockpb.LockRequest{Name: []byte("s1")}
	of := func(c *clientv3.Client) v3lockpb.LockClient { return v3lockpb.NewLockClient(c.ActiveConnection()) }
	if _, err := of(alice).Lock(ctx, own); err != nil {
		t.Errorf("alice locks what she may write: %v", err)
	}
	_, err := of(alice).Lock(ctx, foreign)
	wantStatus(t, "alice locks what she may not write", err, codes.Unknown, "etcdserver: permission denied")
	_, err = of(alice).Unlock(ctx, &v3lockpb.UnlockRequest{Key: []byte("s1")})
	wantStatus(t, "alice unlocks what she may not write", err, codes.Unknown, "etcdserver: permission denied")
	_, err = of(nobody).Lock(ctx, own)
	wantStatus(t, "nobody locks", err, codes.Unknown, "etcdserver: user name is empty")
	elections := v3electionpb.NewElectionClient(alice.ActiveConnection())
	_, err = elections.Leader(ctx, &v3electionpb.LeaderRequest{Name: []byte("s1")})
	wantStatus(t, "alice asks who leads", err, codes.Unknown, "etcdserver: permission denied")
	observer, err := elections.Observe(ctx, &v3electionpb.LeaderRequest{Name: []byte("s1")})
	if err == nil {
		_, err = observer.Recv()
	}
	wantStatus(t, "alice observes", err, codes.PermissionDenied, "etcdserver: permission denied")
	s.awaitMetric(t,
		`grpc_server_handled_total{grpc_code="Unknown",grpc_method="Lock",grpc_service="v3lockpb.Lock",grpc_type="unary"} 2`)
}
