package rpc_test

import (
	"errors"
	"io"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/kv"
)

// A member that is marked corrupt answers nothing from its state: no reads, no writes, no watches, no backup, not even those
// under way. Calls for operating the cluster are answered.
func TestGate_intact(t *testing.T) {
	backend := newMachineBackend(t)
	s := serve(t, backend, nil)
	c, ctx := s.client(t), waitContext(t)
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	w := s.watch(t)
	w.create(&pb.WatchCreateRequest{Key: []byte("k")})
	other := &kv.AlarmOp{Activate: true, Member: uint64(testMember) + 1, Kind: kv.AlarmCorrupt}
	if _, err := backend.Propose(ctx, &kv.Command{Alarm: other}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Errorf("another member is corrupt: %v", err)
	}
	w.next()
	self := &kv.AlarmOp{Activate: true, Member: uint64(testMember), Kind: kv.AlarmCorrupt}
	if _, err := backend.Propose(ctx, &kv.Command{Alarm: self}); err != nil {
		t.Fatal(err)
	}
	put := &kv.Command{Put: &kv.PutOp{Key: []byte("k")}}
	if _, err := backend.Propose(ctx, put); err != nil {
		t.Fatal(err)
	}
	if r, err := w.stream.Recv(); err == nil {
		t.Errorf("a watch goes on: %v", r)
	}
	for name, call := range map[string]func() error{
		"put":                func() error { _, err := c.Put(ctx, "k", "v"); return err },
		"serializable range": func() error { _, err := c.Get(ctx, "k", clientv3.WithSerializable()); return err },
		"range":              func() error { _, err := c.Get(ctx, "k"); return err },
		"txn":                func() error { _, err := c.Txn(ctx).Then(clientv3.OpGet("k")).Commit(); return err },
		"lease":              func() error { _, err := c.Grant(ctx, 10); return err },
		"watch":              func() error { r := <-c.Watch(ctx, "k"); return r.Err() },
		"backup":             func() error { _, err := readAll(c.Snapshot(ctx)); return err },
	} {
		if err := call(); !errors.Is(err, rpctypes.ErrCorrupt) {
			t.Errorf("%s: %v, want %v", name, err, rpctypes.ErrCorrupt)
		}
	}
	status, err := c.Status(ctx, s.addr)
	if err != nil || len(status.Errors) != 2 {
		t.Errorf("status: %v, %v", status, err)
	}
	if alarms, err := c.AlarmList(ctx); err != nil || len(alarms.Alarms) != 2 {
		t.Errorf("alarms: %v, %v", alarms, err)
	}
	s.awaitMetric(t, "quorate_corrupt 1")
	if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "k"); err != nil {
		t.Errorf("disarmed: %v", err)
	}
}

func readAll(r io.ReadCloser, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	return len(content), err
}
