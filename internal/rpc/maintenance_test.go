package rpc_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/reserve"
)

func TestMaintenance_statusHashAndAlarms(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	if _, err := c.Put(ctx, "a", "1"); err != nil {
		t.Fatal(err)
	}
	got, err := c.Status(ctx, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "3.7.3" || got.StorageVersion != "3.7.0" || got.Leader != uint64(testMember) || got.RaftTerm == 0 ||
		got.RaftIndex == 0 || got.RaftAppliedIndex == 0 || got.DbSizeQuota != 2<<30 || got.IsLearner ||
		len(got.Errors) != 0 || got.Header.Revision != 2 || got.DbSize == 0 || got.DbSizeInUse == 0 {
		t.Errorf("status: got %v", got)
	}
	hash, err := c.HashKV(ctx, s.addr, 0)
	if err != nil || hash.HashRevision != 2 || hash.Hash == 0 || hash.CompactRevision != -1 {
		t.Errorf("hash: got %v, %v; want a hash at revision 2", hash, err)
	}
	if _, err := c.HashKV(ctx, s.addr, 9); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("hash of the future: got %v, want %v", err, rpctypes.ErrFutureRev)
	}
	if r, err := c.Defragment(ctx, s.addr); err != nil || r.Header != nil {
		t.Errorf("defragment: got %v, %v; want no header", r, err)
	}
	if _, err := c.MoveLeader(ctx, 99); !errors.Is(err, rpctypes.ErrBadLeaderTransferee) {
		t.Errorf("move leader to no member: got %v, want %v", err, rpctypes.ErrBadLeaderTransferee)
	}
	if _, err := c.Downgrade(ctx, clientv3.DowngradeCancel, ""); err != nil {
		t.Errorf("cancel a downgrade: %v", err)
	}
	_, err = c.Downgrade(ctx, clientv3.DowngradeValidate, "x")
	if !errors.Is(err, rpctypes.ErrWrongDowngradeVersionFormat) {
		t.Errorf("downgrade to x: got %v, want %v", err, rpctypes.ErrWrongDowngradeVersionFormat)
	}
	_, err = c.Downgrade(ctx, clientv3.DowngradeEnable, "3.5.0")
	if !errors.Is(err, rpctypes.ErrInvalidDowngradeTargetVersion) {
		t.Errorf("downgrade: got %v, want %v", err, rpctypes.ErrInvalidDowngradeTargetVersion)
	}
	auth, err := c.AuthStatus(ctx)
	if err != nil || auth.Enabled || auth.AuthRevision != 1 {
		t.Errorf("auth status: got %v, %v; want disabled", auth, err)
	}
	if _, err := c.Authenticate(ctx, "root", "x"); !errors.Is(err, rpctypes.ErrAuthNotEnabled) {
		t.Errorf("authenticate: got %v, want %v", err, rpctypes.ErrAuthNotEnabled)
	}
	if _, err := c.AuthEnable(ctx); !errors.Is(err, rpctypes.ErrRootUserNotExist) {
		t.Errorf("auth enable: got %v, want %v", err, rpctypes.ErrRootUserNotExist)
	}
	health, err := healthpb.NewHealthClient(c.ActiveConnection()).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || health.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: got %v, %v; want SERVING", health, err)
	}
}

func TestMaintenance_quotaRaisesTheAlarm(t *testing.T) {
	s := serveMember(t, func(o *rpcOptions) { o.QuotaBytes = 1 })
	c, ctx := s.client(t), waitContext(t)
	if _, err := c.Put(ctx, "a", "1"); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("put over the quota: got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	if _, err := c.Grant(ctx, 10); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("grant over the quota: got %v, want %v", err, rpctypes.ErrNoSpace)
	}
	if _, err := c.Delete(ctx, "a"); err != nil {
		t.Errorf("delete over the quota: %v", err)
	}
	alarms, err := c.AlarmList(ctx)
	if err != nil || len(alarms.Alarms) != 1 || alarms.Alarms[0].Alarm != pb.AlarmType_NOSPACE ||
		alarms.Alarms[0].MemberID != uint64(testMember) {
		t.Fatalf("alarms: got %v, %v; want NOSPACE of this member", alarms, err)
	}
	if code, body := s.get(t, "/health"); code != 503 || body != `{"health":"false","reason":"ALARM NOSPACE"}`+"\n" {
		t.Errorf("health: got %d %s", code, body)
	}
	if code, _ := s.get(t, "/health?exclude=NOSPACE"); code != 200 {
		t.Errorf("health without NOSPACE: got %d, want 200", code)
	}
	got, err := c.Status(ctx, s.addr)
	if err != nil || len(got.Errors) != 1 {
		t.Errorf("status: got %v, %v; want one error", got, err)
	}
	disarmed, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	if err != nil || len(disarmed.Alarms) != 1 {
		t.Errorf("disarm: got %v, %v; want one alarm", disarmed, err)
	}
	if alarms, err := c.AlarmList(ctx); err != nil || len(alarms.Alarms) != 0 {
		t.Errorf("alarms after disarming: got %v, %v; want none", alarms, err)
	}
}

// writeHistory writes one of each kind of data that a backup has to hold.
func writeHistory(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx := waitContext(t)
	lease, err := c.Grant(ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	steps := []func() error{
		func() error { _, err := c.Put(ctx, "a", "1"); return err }, // 2
		func() error {
			_, err := c.Txn(ctx).Then(clientv3.OpPut("b", "1"), clientv3.OpPut("c", "1")).Commit()
			return err
		}, // 3
		func() error { _, err := c.Put(ctx, "a", "2", clientv3.WithLease(lease.ID)); return err }, // 4
		func() error { _, err := c.Delete(ctx, "b"); return err },                                 // 5
		func() error { _, err := c.Compact(ctx, 4); return err },
		func() error { _, err := c.Put(ctx, "d", "1"); return err }, // 6
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMaintenance_Snapshot_isAnEtcdDatabase(t *testing.T) {
	s := serveMember(t, nil)
	writeHistory(t, s.client(t))
	stream, err := pb.NewMaintenanceClient(s.conn(t)).Snapshot(waitContext(t), &pb.SnapshotRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var file []byte
	var last *pb.SnapshotResponse
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Version != "3.7.0" {
			t.Errorf("version: got %q, want 3.7.0", r.Version)
		}
		if last != nil {
			file = append(file, last.Blob...)
			if len(last.Blob) > 32<<10 {
				t.Errorf("chunk of %d bytes, want at most 32 KiB", len(last.Blob))
			}
		}
		last = r
	}
	sum := sha256.Sum256(file)
	if !bytes.Equal(last.Blob, sum[:]) || last.RemainingBytes != 0 || len(file)%512 != 0 {
		t.Fatalf("last message: got %x for %d bytes, want their sum %x", last.Blob, len(file), sum)
	}
	name := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows := map[string]int{"key": 5, "lease": 1, "members": 1, "members_removed": 0, "cluster": 2, "alarm": 0, "meta": 6,
		"auth": 2, "authUsers": 0, "authRoles": 0}
	err = db.View(func(tx *bbolt.Tx) error {
		for name, want := range rows {
			bucket := tx.Bucket([]byte(name))
			if bucket == nil {
				t.Errorf("no bucket %s", name)
				continue
			}
			if got := bucket.Stats().KeyN; got != want {
				t.Errorf("bucket %s has %d rows, want %d", name, got, want)
			}
		}
		return tx.Bucket([]byte("key")).ForEach(func(k, v []byte) error {
			var p mvccpb.KeyValue
			if len(k) != 17 && (len(k) != 18 || k[17] != 't') || k[8] != '_' {
				t.Errorf("key %x is not a revision", k)
			}
			return proto.Unmarshal(v, &p)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that no client can raise an alarm for a process that is not a member, or of a kind that does not exist: all members
// would have to keep it for ever.
func TestMaintenance_Alarm_strange(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	alarms := pb.NewMaintenanceClient(c.ActiveConnection())
	for _, tc := range []struct {
		name    string
		request *pb.AlarmRequest
		want    codes.Code
	}{
		{"one of no member", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: 77, Alarm: pb.AlarmType_NOSPACE}, codes.NotFound},
		{"an unknown kind", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: 3}, codes.InvalidArgument},
		{"a kind beyond a byte", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: 257}, codes.InvalidArgument},
		{"an action that does not exist", &pb.AlarmRequest{Action: 9, Alarm: pb.AlarmType_NOSPACE}, codes.InvalidArgument},
		{"no kind", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: 77}, codes.NotFound},
		{"the end of one of no member", &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: 77, Alarm: pb.AlarmType_NOSPACE}, codes.OK},
		{"a member's", &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: uint64(testMember), Alarm: pb.AlarmType_NOSPACE}, codes.OK},
	} {
		if _, err := alarms.Alarm(ctx, tc.request); status.Code(err) != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
	// 257 is NOSPACE in a byte: no alarm is listed for it, and none ends.
	for _, action := range []pb.AlarmRequest_AlarmAction{pb.AlarmRequest_GET, pb.AlarmRequest_DEACTIVATE} {
		answer, err := alarms.Alarm(ctx, &pb.AlarmRequest{Action: action, MemberID: uint64(testMember), Alarm: 257})
		if err != nil || len(answer.Alarms) != 0 {
			t.Errorf("%v of a kind beyond a byte: got %v, %v, want no alarm", action, answer, err)
		}
	}
	if got, err := c.AlarmList(ctx); err != nil || len(got.Alarms) != 1 || got.Alarms[0].MemberID != uint64(testMember) {
		t.Errorf("alarms: %v, %v", got, err)
	}
}

// Ensure that clients cannot mark so many members corrupt that the cluster serves nothing.
func TestMaintenance_Alarm_corruptMajority(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	_, err := pb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx, &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, MemberID: uint64(testMember), Alarm: pb.AlarmType_CORRUPT})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the only voter is marked corrupt: %v", err)
	}
	if got, err := c.AlarmList(ctx); err != nil || len(got.Alarms) != 0 {
		t.Errorf("alarms: %v, %v", got, err)
	}
}

// Ensure that headers that grow when they are decompressed end the call, and use no memory.
func TestServices_headers(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	ctx = metadata.AppendToOutgoingContext(ctx, "a", strings.Repeat("x", 64<<10))
	if _, err := pb.NewKVClient(c.ActiveConnection()).Range(ctx, &pb.RangeRequest{Key: []byte("a")}); err == nil {
		t.Error("64 KiB of headers are taken")
	}
	if _, err := c.Get(waitContext(t), "a"); err != nil {
		t.Errorf("others: %v", err)
	}
}

// Ensure that backups that are not read do not use up the disk: beyond four of an address they are refused.
func TestMaintenance_Snapshot_many(t *testing.T) {
	s := serveMember(t, nil)
	c, ctx := s.client(t), waitContext(t)
	// A backup that its client does not read waits once the stream's window is full. The window must not grow: grpc-go's does
	// by default, sometimes beyond the backup.
	for i := range 4 {
		if _, err := c.Put(ctx, fmt.Sprint(i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	backups := pb.NewMaintenanceClient(s.dialFrom(t, "127.0.0.1"))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range 4 {
		stream, err := backups.Snapshot(ctx, &pb.SnapshotRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatalf("backup %d: %v", i, err)
		}
	}
	stream, err := backups.Snapshot(ctx, &pb.SnapshotRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the fifth backup: got %v, want ResourceExhausted", err)
	}
}

// settable is a clock that tests set.
type settable struct {
	env.WallClock
	now atomic.Int64
}

func (c *settable) Now() time.Time { return time.Unix(c.now.Load(), 0) }

// Ensure that the alarm of a full store ends by itself, but only once a tenth of the quota was free for a minute.
func TestServices_KeepQuota(t *testing.T) {
	clock := &settable{}
	s := serve(t, newMachineBackend(t), func(o *rpcOptions) { o.QuotaBytes, o.Clock = 64<<10, clock })
	c, ctx := s.client(t), waitContext(t)
	alarms := func() int {
		t.Helper()
		list, err := c.AlarmList(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Alarms)
	}
	review := func(seconds int64) int {
		clock.now.Add(seconds)
		rpc.ReviewQuota(ctx, s.services)
		return alarms()
	}
	keys := 0
	for ; ; keys++ {
		if _, err := c.Put(ctx, fmt.Sprintf("k%03d", keys), strings.Repeat("v", 1000)); errors.Is(err, rpctypes.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Delete(ctx, "k000"); err != nil {
		t.Fatalf("a deletion in a full store: %v", err)
	}
	for range 30 {
		if review(60) != 1 {
			t.Fatal("the alarm ended, although nothing was freed")
		}
	}
	deleted, err := c.Delete(ctx, "k0", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(ctx, deleted.Header.Revision); err != nil {
		t.Fatal(err)
	}
	machine, release := s.backend.Machine()
	defer release()
	for done := false; !done; {
		if done, err = machine.Store().CompactStep(1000); err != nil {
			t.Fatal(err)
		}
	}
	if review(5) != 1 || review(30) != 1 {
		t.Error("the alarm ended at once")
	}
	if review(31) != 0 {
		t.Error("the alarm stays, although the store has had room for a minute")
	}
	if _, err := c.Put(ctx, "k", "v"); err != nil {
		t.Errorf("a put after the alarm ended: %v", err)
	}
}

// fullDisk is a disk with little room.
type fullDisk struct{ env.FS }

func (fullDisk) DiskUsage(string) (env.DiskUsage, error) {
	return env.DiskUsage{AvailBytes: 64 << 20}, nil
}

// Ensure that a backup is made only if the disk has room for it beside its reserve, and that a backup leaves no claim.
func TestMaintenance_Snapshot_noRoom(t *testing.T) {
	backups := 20
	if testing.Short() {
		backups = 3
	}
	for _, row := range []struct {
		reserve int64
		made    bool
	}{{64 << 20, false}, {1 << 20, true}} {
		s := serveMember(t, func(o *rpcOptions) { o.Room = reserve.New(fullDisk{files.Disk}, row.reserve, "data") })
		c, ctx := s.client(t), waitContext(t)
		if _, err := c.Put(ctx, "a", strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
		for range backups { // there is no room for 20 of them together
			backup, err := c.Snapshot(ctx)
			if err == nil {
				_, err = io.Copy(io.Discard, backup)
			}
			if row.made != (err == nil) || err != nil && !strings.Contains(err.Error(), "nearly full") {
				t.Fatalf("reserve %d: got %v, made %t is wanted", row.reserve, err, row.made)
			}
		}
	}
}

// Ensure that backups are made one after the other where there is memory for one, and that a waiting one ends with its call.
func TestMaintenance_Snapshot_turns(t *testing.T) {
	s := serveMember(t, func(o *rpcOptions) { o.BackupBytes = 3 << 20 })
	leave, err := s.services.EnterBackup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := s.client(t), waitContext(t)
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	read := func(ctx context.Context) error {
		backup, err := c.Snapshot(ctx)
		if err == nil {
			_, err = io.Copy(io.Discard, backup)
		}
		return err
	}
	if err := read(short); status.Code(err) != codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a backup without memory: got %v", err)
	}
	done := make(chan error, 3)
	for range cap(done) {
		go func() { done <- read(ctx) }()
	}
	leave()
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
