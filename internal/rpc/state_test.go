package rpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/memory"
)

// Ensure that leases are granted, and users and roles made, only as far as this member has memory for them, and that there is
// room again when some are gone.
func TestServices_stateWithinMemory(t *testing.T) {
	const leases = 3
	s := serveNative(t, func(o *rpcOptions) { o.State.Leases, o.State.Users = (leases+1)*lease.EachBytes, 4000 })
	c, ctx := s.client(t), waitContext(t)
	var last clientv3.LeaseID
	for range leases {
		granted, err := c.Grant(ctx, 600)
		if err != nil {
			t.Fatal(err)
		}
		last = granted.ID
	}
	if _, err := c.Grant(ctx, 600); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "too many leases") {
		t.Errorf("one lease more: %v", err)
	}
	if _, err := c.Revoke(ctx, last); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Grant(ctx, 600); err != nil {
		t.Errorf("after one was revoked: %v", err)
	}
	if _, err := c.RoleAdd(ctx, "wide"); err != nil {
		t.Fatal(err)
	}
	wide := strings.Repeat("k", 1<<20) // as users and roles, it would be three times as much
	if _, err := c.RoleGrantPermission(ctx, "wide", wide, "", clientv3.PermissionType(clientv3.PermRead)); status.Code(err) !=
		codes.ResourceExhausted {
		t.Errorf("a permission that is longer than all users and roles may be: %v", err)
	}
	if _, err := c.RoleDelete(ctx, "wide"); err != nil {
		t.Fatal(err)
	}
	var refused error
	roles := 0
	for ; refused == nil && roles < 100; roles++ {
		_, refused = c.RoleAdd(ctx, fmt.Sprintf("role%03d", roles))
	}
	if status.Code(refused) != codes.ResourceExhausted || !strings.Contains(refused.Error(), "users and roles take") {
		t.Fatalf("after %d roles: %v", roles, refused)
	}
	for i := range 2 {
		if _, err := c.RoleDelete(ctx, fmt.Sprintf("role%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.RoleAdd(ctx, "again"); err != nil {
		t.Errorf("after two were deleted: %v", err)
	}
}

// Ensure that a member with much memory admits no more than the member with the least can hold, and names that member, even if
// it is down; and admits more when that one has more.
func TestServices_leastMemory(t *testing.T) {
	m := startMember(t)
	s := serve(t, m, nil)
	tell := func(bytes int64) {
		t.Helper()
		result, err := m.Propose(waitContext(t), &kv.Command{Publish: &kv.PublishOp{Member: uint64(testMember), Name: "small",
			Level: level.Own, Memory: bytes}})
		if err = errors.Join(err, result.Err); err != nil {
			t.Fatal(err)
		}
	}
	tell(memory.MinLimit)
	c, ctx := s.client(t), waitContext(t)
	if _, err := c.RoleAdd(ctx, "large"); err != nil {
		t.Fatal(err)
	}
	key := strings.Repeat("k", int(memory.Divide(memory.MinLimit).State.Users))
	grant := func() error {
		_, err := c.RoleGrantPermission(ctx, "large", key, "", clientv3.PermissionType(clientv3.PermRead))
		return err
	}
	err := grant()
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "member small, which has --memory=128MiB,") {
		t.Errorf("a permission more than the smallest member holds: %v", err)
	}
	tell(memory.DefaultMost)
	if err := grant(); err != nil {
		t.Errorf("when that member has more: %v", err)
	}
}

// Ensure that keys of over a KiB are refused when the first and last keys of tables have used up their memory, in transactions
// and of native clients too, and that other keys are written and all can be deleted.
func TestKV_Put_longKeys(t *testing.T) {
	s := serveNative(t, func(o *rpcOptions) { o.State.Bounds = 4 }) // a new store has a table
	c, native, ctx := s.client(t), s.native(t), waitContext(t)
	long, short := strings.Repeat("k", 1025), strings.Repeat("k", 1024)
	for name, do := range map[string]func() error{
		"a put":           func() error { _, err := c.Put(ctx, long, ""); return err },
		"a transaction":   func() error { _, err := c.Txn(ctx).Else(clientv3.OpPut(long, "")).Commit(); return err },
		"a native client": func() error { _, err := native.Put(ctx, long, ""); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "no memory for more keys of over 1024 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Put(ctx, short, ""); err != nil {
		t.Errorf("a short key: %v", err)
	}
	if _, err := c.Delete(ctx, long); err != nil {
		t.Errorf("a deletion: %v", err)
	}
}
