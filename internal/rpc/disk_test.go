package rpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// sayLow is a disk that is nearly full while low is set.
func sayLow(low *atomic.Bool) func() string {
	return func() string {
		if low.Load() {
			return "disk of m1 nearly full"
		}
		return ""
	}
}

// Ensure that a member whose disk is nearly full refuses growing writes, and backups, serves everything else, lists an alarm
// that forbids nothing and that need not be disarmed, and continues once there is room.
func TestMaintenance_diskReserve(t *testing.T) {
	var low atomic.Bool
	s := serveMember(t, func(o *rpcOptions) { o.LowDisk = sayLow(&low) })
	c, ctx := s.client(t), waitContext(t)
	if _, err := c.Put(ctx, "a", "1"); err != nil {
		t.Fatal(err)
	}
	low.Store(true)
	if _, err := c.Put(ctx, "a", "2"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("put: got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	if _, err := c.Txn(ctx).Then(clientv3.OpPut("b", "1")).Commit(); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("transaction: got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	if backup, err := c.Snapshot(ctx); err == nil {
		if _, err = io.ReadAll(backup); err == nil || !strings.Contains(err.Error(), "nearly full") {
			t.Errorf("backup: got %v, want a refusal", err)
		}
	}
	if got, err := c.Get(ctx, "a"); err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "1" {
		t.Errorf("get: %v, %v", got, err)
	}
	if _, err := c.Compact(ctx, 2); err != nil {
		t.Errorf("compact: %v", err)
	}
	if _, err := c.Delete(ctx, "a"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got := alarmsOf(ctx, t, c); len(got) != 1 || got[0].Alarm != pb.AlarmType_NOSPACE || got[0].MemberID == 0 {
		t.Errorf("alarms of a member whose disk is nearly full: %v", got)
	}
	if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil || len(alarmsOf(ctx, t, c)) != 1 {
		t.Errorf("disarm what nobody stores: %v", err)
	}
	low.Store(false)
	if got := alarmsOf(ctx, t, c); len(got) != 0 {
		t.Errorf("alarms with room again: %v", got)
	}
	if _, err := c.Put(ctx, "a", "3"); err != nil {
		t.Errorf("put with room again: %v", err)
	}
}

func alarmsOf(ctx context.Context, t *testing.T, c *clientv3.Client) []*pb.AlarmMember {
	t.Helper()
	list, err := c.AlarmList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return list.Alarms
}
