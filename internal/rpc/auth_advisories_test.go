package rpc_test

import (
	"context"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Ensure that the attacks of etcd's security advisories are refused here. CVE-2018-16886 is TestControl_Caller_certificate,
// CVE-2021-28235 is etcd's own test in test/compat.
func TestAuth_advisories(t *testing.T) {
	s, root, alice, nobody := secured(t)
	ctx := waitContext(t)
	lease, err := root.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { _, err := root.Put(ctx, "s2", "leased", clientv3.WithLease(lease.ID)); return err },
		func() error { _, err := root.UserAdd(ctx, "exact", "exactpw"); return err },
		func() error { _, err := root.RoleAdd(ctx, "one"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "one", "s1", "", clientv3.PermissionType(clientv3.PermRead))
			return err
		},
		func() error { _, err := root.UserGrantRole(ctx, "exact", "one"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "reader", "w", "", clientv3.PermissionType(clientv3.PermWrite))
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	exact := s.as(t, "exact")
	txn := func(c *clientv3.Client, ops ...clientv3.Op) error {
		_, err := c.Txn(ctx).Then(ops...).Commit()
		return err
	}
	nested := func(op clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, nil, []clientv3.Op{op}) }
	for _, row := range []struct {
		name string
		err  error
	}{
		{"CVE-2023-32082, etcd 15872: keys of a lease", func() error {
			_, err := alice.TimeToLive(ctx, lease.ID, clientv3.WithAttachedKeys())
			return err
		}()},
		{"CVE-2026-33343, GHSA-rfx7-8w68-q57q: a nested transaction reads", txn(alice, nested(clientv3.OpGet("s1")))},
		{"the same, in the branch that is not taken", txn(alice, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet("s1")}, nil))},
		{"the same, writes", txn(alice, nested(clientv3.OpPut("s1", "v")))},
		{"the same, deletes", txn(alice, nested(nested(clientv3.OpDelete("s1"))))},
		{"the same, compares", txn(alice,
			clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value("s1"), "=", "v")}, nil, nil))},
		{"CVE-2026-44283: a put of a transaction shows what was there",
			txn(alice, clientv3.OpPut("w", "v", clientv3.WithPrevKV()))},
		{"the same, nested", txn(alice, nested(clientv3.OpPut("w", "v", clientv3.WithPrevKV())))},
		{"the same, ties a key to the lease of others", txn(alice, nested(clientv3.OpPut("w", "v", clientv3.WithLease(lease.ID))))},
		{"CVE-2026-33413, GHSA-q8m4-xhhv-38mg: nobody lists the members", func() error {
			_, err := nobody.MemberList(ctx)
			return err
		}()},
		{"the same, alarms", func() error {
			_, err := pb.NewMaintenanceClient(nobody.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{})
			return rpctypes.Error(err)
		}()},
		{"the same, grants a lease", func() error { _, err := nobody.Grant(ctx, 60); return err }()},
		{"the same, ends a lease", func() error { _, err := nobody.Revoke(ctx, lease.ID); return err }()},
		{"the same, lists leases", func() error { _, err := nobody.Leases(ctx); return err }()},
		{"the same, compacts", func() error { _, err := nobody.Compact(ctx, 1); return err }()},
		{"GHSA-xg4h-6gfc-h4m8: a watch from the one key on that may be read", watchFrom(ctx, exact, "s1")},
	} {
		if !denied(row.err) {
			t.Errorf("%s: got %v", row.name, row.err)
		}
	}
	if err := txn(alice, nested(clientv3.OpPut("w", "v"))); err != nil {
		t.Errorf("a nested put of a key that may be written: %v", err)
	}
	if err := watchOnce(ctx, "s1", "")(exact); err != nil {
		t.Errorf("a watch of the one key: %v", err)
	}
}

// watchFrom watches all keys from key on.
func watchFrom(ctx context.Context, c *clientv3.Client, key string) error {
	return watchOnce(ctx, key, "\x00")(c)
}
