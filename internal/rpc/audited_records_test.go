package rpc_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/rpc"
)

// Ensure that root reads the latest records of a member's file, by user, prefix and operation, and nobody else does; that a request
// which cannot be meant says what is wrong; and that a member without a file says so.
func TestAudit_Records(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.log")
	file, from, err := trail.OpenFile(name, trail.Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	records := trail.New(trail.Options{Member: uint64(testMember), Bytes: 1 << 20, Clock: env.WallClock{},
		Logger: slog.New(slog.DiscardHandler), Sinks: []trail.SinkOptions{{Name: name, Port: file, From: from}}})
	policy, err := audit.Parse([]byte(`{"rules": [{"level": "metadata"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/a/1", "/b/1", "/a/2"} {
		records.Record(policy, &audit.Event{Op: audit.OpPut, User: "ann", Parts: []audit.Part{{Key: []byte(key)}}})
	}
	records.Record(policy, &audit.Event{Op: audit.OpCompact})
	records.Run()
	records.Close(time.Minute)
	s := serve(t, newMachineBackend(t), func(o *rpc.Options) { o.Audit = records })
	enable(t, s)
	root, ctx := quoratepb.NewAuditClient(s.as(t, "root").ActiveConnection()), waitContext(t)
	for _, row := range []struct {
		ask   *quoratepb.AuditRecordsRequest
		want  string // keys, or operations, the newest first
		whole bool
	}{
		{&quoratepb.AuditRecordsRequest{}, "ends compact /a/2 /b/1 /a/1 file", true},
		{&quoratepb.AuditRecordsRequest{Limit: 2}, "ends compact", false},
		{&quoratepb.AuditRecordsRequest{User: proto.String("ann"), Prefix: []byte("/a/")}, "/a/2 /a/1", true},
		{&quoratepb.AuditRecordsRequest{User: proto.String("")}, "compact", true},
		{&quoratepb.AuditRecordsRequest{Operation: "compact"}, "compact", true},
		{&quoratepb.AuditRecordsRequest{Operation: "put", Limit: 1 << 40}, "/a/2 /b/1 /a/1", true},
		{&quoratepb.AuditRecordsRequest{User: proto.String("bob")}, "", true},
	} {
		answer, err := root.Records(ctx, row.ask)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range answer.GetLines() {
			e, ok := audit.ParseEntry([]byte(line))
			if !ok {
				t.Fatalf("no record: %s", line)
			}
			got = append(got, strings.TrimSpace(e.Key+e.Event+strings.ReplaceAll(e.Op, "put", "")))
		}
		if strings.Join(got, " ") != row.want || answer.GetWhole() != row.whole || answer.GetOutput() != name ||
			answer.GetMember() != uint64(testMember) {
			t.Errorf("%v: got %q of %s, whole %v", row.ask, got, answer.GetOutput(), answer.GetWhole())
		}
	}
	for want, ask := range map[string]*quoratepb.AuditRecordsRequest{"limit is -1": {Limit: -1}, `no operation "pat"`: {Operation: "pat"}} {
		if _, err := root.Records(ctx, ask); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", ask, err)
		}
	}
	alice := quoratepb.NewAuditClient(s.as(t, "alice").ActiveConnection())
	if _, err := alice.Records(ctx, &quoratepb.AuditRecordsRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("alice: %v", err)
	}
	none := serve(t, newMachineBackend(t), nil)
	_, err = quoratepb.NewAuditClient(none.conn(t)).Records(ctx, &quoratepb.AuditRecordsRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "--audit-log names one") {
		t.Errorf("without a file: %v", err)
	}
}
