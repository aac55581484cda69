package rpc_test

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/member/clients"
)

func (s *server) native(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestNative uses the native client as programs use clientv3.
func TestNative(t *testing.T) {
	s := serveNative(t, nil)
	c, ctx := s.native(t), waitContext(t)
	events := c.Watch(ctx, "k", clientv3.WithPrefix())
	if _, err := c.Get(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	put, err := c.Put(ctx, "k", "1")
	if err != nil || put.Header.Revision != 2 || put.Header.MemberId != uint64(testMember) {
		t.Fatalf("put: got %v, %v", put, err)
	}
	if put, err = c.Put(ctx, "k", "2", clientv3.WithPrevKV()); err != nil || string(put.PrevKv.GetValue()) != "1" {
		t.Errorf("put: got %v, %v", put, err)
	}
	txn, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Value("k"), "=", "2")).
		Then(clientv3.OpPut("k2", "3"), clientv3.OpGet("k")).Commit()
	if err != nil || !txn.Succeeded || len(txn.Responses) != 2 || string(txn.Responses[1].GetResponseRange().Kvs[0].Value) != "2" {
		t.Errorf("txn: got %v, %v", txn, err)
	}
	if read, err := c.Txn(ctx).Then(clientv3.OpGet("k2")).Commit(); err != nil || read.Header.Revision != txn.Header.Revision {
		t.Errorf("read-only txn: got %v, %v", read, err)
	}
	if done, err := c.Do(ctx, clientv3.OpDelete("k", clientv3.WithPrefix())); err != nil || done.Del().Deleted != 2 {
		t.Errorf("delete: got %v, %v", done, err)
	}
	for seen := 0; seen < 5; {
		response := <-events
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		seen += len(response.Events)
	}
	if _, err := c.Compact(ctx, 2); err != nil {
		t.Errorf("compact: %v", err)
	}
	s.awaitMetric(t, "quorate_client_sessions 1")
	if err := c.Close(); err != nil && !errors.Is(err, ctx.Err()) {
		t.Logf("close: %v", err)
	}
	s.awaitMetric(t, "quorate_client_sessions 0")
}

// TestNative_errors gives etcd's own errors, as clientv3 does.
func TestNative_errors(t *testing.T) {
	s := serveNative(t, nil)
	c, ctx := s.native(t), waitContext(t)
	for _, tc := range []struct {
		name string
		op   clientv3.Op
		want error
	}{
		{"no key", clientv3.OpPut("", "v"), rpctypes.ErrEmptyKey},
		{"no such lease", clientv3.OpPut("k", "v", clientv3.WithLease(77)), rpctypes.ErrLeaseNotFound},
		{"nothing to keep", clientv3.OpPut("k", "", clientv3.WithIgnoreValue()), rpctypes.ErrKeyNotFound},
		{"too large", clientv3.OpPut("k", string(make([]byte, 1600<<10))), rpctypes.ErrRequestTooLarge},
		{"larger than a message", clientv3.OpPut("k", string(make([]byte, 3<<20))), rpctypes.ErrRequestTooLarge},
		{"twice one key", clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("k", "1"), clientv3.OpPut("k", "2")}, nil),
			rpctypes.ErrDuplicateKey},
	} {
		if _, err := c.Do(ctx, tc.op); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}

// TestNative_concurrency uses clientv3's locks and elections, which need a *clientv3.Client.
func TestNative_concurrency(t *testing.T) {
	s := serveNative(t, nil)
	c, ctx := s.native(t), waitContext(t)
	session, err := concurrency.NewSession(c.Client)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	lock := concurrency.NewMutex(session, "lock")
	if err := lock.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// TestNative_otherServer returns an error if no server supports native writes.
func TestNative_otherServer(t *testing.T) {
	s := serve(t, newMachineBackend(t), nil)
	if _, err := s.native(t).Put(waitContext(t), "k", "v"); !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// TestNative_sessions uses sessions up.
func TestNative_sessions(t *testing.T) {
	s := serveNative(t, nil)
	c, ctx := s.native(t), waitContext(t)
	const writers = 64
	done := make(chan error, writers)
	for range writers {
		go func() {
			for range clients.ClientSessionLength / writers * 5 / 4 {
				if _, err := c.Put(ctx, "k", "v"); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Get(ctx, "k")
	if want := int64(clients.ClientSessionLength / writers * 5 / 4 * writers); err != nil || got.Kvs[0].Version != want {
		t.Errorf("got %v, %v, want version %d", got, err, want)
	}
}
