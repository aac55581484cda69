package rpc_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
)

// Ensure that each method that a member serves has a kind of its own, by which rules of an audit select it, and that the
// methods which are never refused are there.
func TestAudit_ops(t *testing.T) {
	server := grpc.NewServer()
	s, _ := serveAudited(t, false, "")
	s.services.RegisterWith(server)
	unrefused := 0
	for service, info := range server.GetServiceInfo() {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			if audit.OpOf(name) == audit.OpOther && !audit.Unaudited(name) {
				t.Errorf("%s is recorded as one that this build does not know", name)
			}
			if audit.Unrefused(name) {
				unrefused++
			}
			if op := audit.OpOf(name); audit.Unrefused(name) && op != audit.OpStatus && op != audit.OpLease {
				t.Errorf("%s tells how members are, and is of kind %v", name, op)
			}
		}
	}
	if unrefused < 5 {
		t.Errorf("%d methods are never refused", unrefused)
	}
}

// Ensure that the record of a limit says what it bounds.
func TestAudit_limit(t *testing.T) {
	s, to := serveAudited(t, false, `{"rules": [{"level": "metadata", "operations": ["cluster"]}]}`)
	reads, api := int64(0), quoratepb.NewLimitsClient(s.conn(t))
	limit := &quoratepb.Limit{Name: "all", Prefix: []byte("/a/"), ReadsPerSecond: &reads}
	if _, err := api.SetLimit(waitContext(t), &quoratepb.SetLimitRequest{Limit: limit}); err != nil {
		t.Fatal(err)
	}
	r := to.await(t, "a limit", func(r *seen) bool { return strings.HasSuffix(r.Method, "SetLimit") })
	if r.About != "name=all reads_per_second=0" || r.Key != "/a/" || r.End != "/a0" {
		t.Errorf("recorded as %+v", r)
	}
}

// Ensure that the record of the start of a backup says where all keys are to go, and repeats nothing that may be secret, also if
// the call is refused.
func TestAudit_backup(t *testing.T) {
	s, to := serveAudited(t, false, `{"rules": [{"level": "metadata", "operations": ["cluster"]}]}`)
	api := quoratepb.NewBackupClient(s.conn(t))
	for _, row := range []struct {
		r    *quoratepb.StartBackupRequest
		want string
	}{
		{&quoratepb.StartBackupRequest{Place: "s3://bbb/p", BaseSeconds: 60, Keep: "14d", InTheClear: true, VerifySeconds: new(int64(0))},
			"place=s3://bbb/p base_seconds=60 verify_seconds=0 keep=14d in_the_clear=true"},
		{&quoratepb.StartBackupRequest{Place: "s3://key:hidden@bbb/p", Recipients: []string{"AGE-SECRET-KEY-1HIDDEN", "x"}},
			"place=(none) recipients=2"},
	} {
		_, _ = api.Start(waitContext(t), row.r)
		r := to.await(t, row.want, func(r *seen) bool { return strings.HasSuffix(r.Method, "Backup/Start") && r.About == row.want })
		if r.About != row.want || r.Op != "cluster" {
			t.Errorf("recorded as %+v", r)
		}
	}
}

// Ensure that leases are renewed, and that a member tells how it is, while a required output takes no records.
func TestAudit_blocked_renewals(t *testing.T) {
	s, to := serveAudited(t, true, `{"rules": [{"level": "metadata"}]}`)
	c, ctx := s.client(t), waitContext(t)
	granted, err := c.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	to.fail(errors.New("no space left on device"))
	for err == nil && ctx.Err() == nil {
		_, err = c.Put(ctx, "a", "")
	}
	if status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	if _, err := c.KeepAliveOnce(ctx, granted.ID); err != nil {
		t.Errorf("a renewal: %v", err)
	}
	if _, err := c.MemberList(ctx); err != nil {
		t.Errorf("a list of members: %v", err)
	}
}

// Ensure that a write which is refused since it cannot be recorded takes nothing from what a limit allows.
func TestAudit_blocked_limits(t *testing.T) {
	s, to := serveAudited(t, true, `{"rules": [{"level": "metadata", "operations": ["put"]}]}`)
	c, ctx, second := s.client(t), waitContext(t), int64(1)
	limit := &quoratepb.Limit{Name: "slow", Prefix: []byte("/a/"), WriteBytesPerSecond: &second}
	if _, err := quoratepb.NewLimitsClient(s.conn(t)).SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: limit}); err != nil {
		t.Fatal(err)
	}
	to.fail(errors.New("no space left on device"))
	var err error
	for err == nil && ctx.Err() == nil {
		_, err = c.Put(ctx, "b", "")
	}
	for range 3 {
		if _, err := c.Put(ctx, "/a/k", strings.Repeat("v", 60)); status.Code(err) != codes.Unavailable {
			t.Fatalf("while nothing is recorded: %v", err)
		}
	}
	to.fail(nil)
	for err != nil && ctx.Err() == nil {
		_, err = c.Put(ctx, "b", "")
	}
	if _, err := c.Put(ctx, "/a/k", ""); err != nil {
		t.Errorf("the first write that passes: %v", err)
	}
}
