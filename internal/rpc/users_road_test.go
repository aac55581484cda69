package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
)

// promptBackend can be asked without waiting, as a member can, and counts how many times it was.
type promptBackend struct {
	*machineBackend
	asked atomic.Int64
}

func (p *promptBackend) Prompt() bool { return true }

func (p *promptBackend) PromptFor(*kv.Command) bool { return true }

func (p *promptBackend) ProposeAsync(command *kv.Command, done proposals.Completion) (func() bool, error) {
	p.asked.Add(1)
	result, err := p.Propose(context.Background(), command)
	go done.Complete(result, err)
	return func() bool { return false }, nil
}

func (p *promptBackend) ReadAsync(done proposals.Completion) (func() bool, error) {
	p.asked.Add(1)
	go done.Complete(kv.Result{}, nil)
	return func() bool { return false }, nil
}

// Ensure that calls of users are served without a goroutine, too, and that calls that are not permitted get the same answers
// with and without one.
func TestUsers_withoutGoroutine(t *testing.T) {
	backend := &promptBackend{machineBackend: newMachineBackend(t)}
	prompt, other := serve(t, backend, nil), serveMember(t, nil)
	enable(t, prompt)
	enable(t, other)
	ctx := waitContext(t)
	txn := func(key string) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "<", 1000)).
				Then(clientv3.OpPut(key, "w")).Commit()
			return err
		}
	}
	put := func(key string) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error { _, err := c.Put(ctx, key, "v"); return err }
	}
	get := func(key string) func(*clientv3.Client) error {
		return func(c *clientv3.Client) error { _, err := c.Get(ctx, key); return err }
	}
	clients := map[string][2]*clientv3.Client{}
	for _, user := range []string{"alice", "root", ""} {
		clients[user] = [2]*clientv3.Client{prompt.as(t, user), other.as(t, user)}
	}
	for _, row := range []struct {
		name, user string
		do         func(*clientv3.Client) error
		asked      int64
		want       error
	}{
		{"a put", "alice", put("a1"), 1, nil},
		{"a get", "alice", get("a1"), 1, nil},
		{"a transaction", "alice", txn("a1"), 1, nil},
		{"a transaction of many operations", "alice", func(c *clientv3.Client) error {
			var ops []clientv3.Op
			for i := range 20 {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("a%d", i), "w"))
			}
			_, err := c.Txn(ctx).Then(ops...).Commit()
			return err
		}, 0, nil},
		{"a get of what may be read only", "alice", get("b1"), 1, nil},
		{"a put of root", "root", put("x"), 1, nil},
		{"a put that is not permitted", "alice", put("b1"), 0, rpctypes.ErrPermissionDenied},
		{"a get that is not permitted", "alice", get("c1"), 0, rpctypes.ErrPermissionDenied},
		{"a transaction that is not permitted", "alice", txn("c1"), 0, rpctypes.ErrPermissionDenied},
		{"a put of nobody", "", put("a1"), 0, rpctypes.ErrUserEmpty},
		{"a get of nobody", "", get("a1"), 0, rpctypes.ErrUserEmpty},
		{"a put without a key", "alice", put(""), 0, rpctypes.ErrEmptyKey},
	} {
		before := backend.asked.Load()
		for i, c := range clients[row.user] {
			if err := row.do(c); !errors.Is(err, row.want) {
				t.Errorf("%s, server %d: got %v, want %v", row.name, i, err, row.want)
			}
		}
		if asked := backend.asked.Load() - before; asked != row.asked {
			t.Errorf("%s: the member was asked %d times without waiting, want %d", row.name, asked, row.asked)
		}
	}
	root := clients["root"][0]
	if _, err := root.UserRevokeRole(ctx, "alice", "reader"); err != nil {
		t.Fatal(err)
	}
	if err := put("a1")(clients["alice"][0]); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("a put after the role was revoked: %v", err)
	}
}
