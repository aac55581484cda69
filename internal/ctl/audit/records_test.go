package audit_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// member answers with records that a test made up.
type member struct {
	quoratepb.UnimplementedAuditServer
	asked  *quoratepb.AuditRecordsRequest
	answer *quoratepb.AuditRecords
}

func (m *member) Records(_ context.Context, r *quoratepb.AuditRecordsRequest) (*quoratepb.AuditRecords, error) {
	if m.asked = r; m.answer == nil {
		return nil, status.Error(codes.FailedPrecondition, "this member writes records to no file")
	}
	return m.answer, nil
}

// Ensure that records are asked for as the flags say, and printed for people and for programs, whatever clients have sent.
func TestRecords(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, server := new(member), grpc.NewServer()
	quoratepb.RegisterAuditServer(server, m)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	run := func(words ...string) ctltest.Result {
		return ctltest.RunAt(t, l.Addr().String(), append([]string{"audit", "records"}, words...)...)
	}
	const denied = `{"seq":9,"time":"2026-11-30T07:41:05.9Z","user":"ann\u001b","from":"10.0.0.7:1","op":"put","key_base64":"/wA=",` +
		`"decision":"denied","code":"PermissionDenied"}`
	m.answer = &quoratepb.AuditRecords{Member: 0xa1, Output: "/var/log/a\x1b.log", LookedAt: 3, Lines: []string{denied,
		`{"seq":8,"time":"2026-11-30T07:41:04Z","op":"range","key":"/a","to":"the end","decision":"allowed","revision":7}`,
		`{"seq":6,"time":"2026-11-30T07:41:02Z","op":"put","key":"/a","write":"c/b/7","decision":"allowed","attempt":"witness"}`,
		`{"seq":5,"time":"2026-11-30T07:41:01Z","op":"put","key":"/a","write":"c/b/7","decision":"allowed","attempt":"repeat"}`,
		`{"seq":7,"time":"2026-11-30T07:41:03Z","event":"file","why":"rotated"}`, "no record"}}
	got := run()
	const want = `TIME (UTC)               USER  FROM        OPERATION  OUTCOME                   REVISION  ABOUT
2026-11-30 07:41:05.900  ann   10.0.0.7:1  put        denied, PermissionDenied            "\xff\x00"
2026-11-30 07:41:04.000                    range      allowed                   7         from /a on
2026-11-30 07:41:02.000                    put        held as a witness                   /a
2026-11-30 07:41:01.000                    put        allowed, sent again                 /a
2026-11-30 07:41:03.000                    file                                           the file before this one was full
`
	if got.Out != want || got.Status != 0 || !strings.Contains(got.Err, "3 records looked at, at the end of /var/log/a") ||
		!strings.Contains(got.Err, "of member a1") {
		t.Errorf("status %d, %s%s", got.Status, got.Out, got.Err)
	}
	if !proto.Equal(m.asked, &quoratepb.AuditRecordsRequest{Limit: 50}) {
		t.Errorf("asked for %v", m.asked)
	}
	if got = run("-o", "json", "--by", "", "--prefix", "/a/", "--operation", "put", "--limit", "7"); !strings.HasPrefix(got.Out, denied+"\n") {
		t.Errorf("%s%s", got.Out, got.Err)
	}
	if !proto.Equal(m.asked, &quoratepb.AuditRecordsRequest{User: proto.String(""), Prefix: []byte("/a/"), Operation: "put", Limit: 7}) {
		t.Errorf("asked for %v", m.asked)
	}
	m.answer = nil
	for part, words := range map[string][]string{"--operation pat: one of": {"--operation", "pat"}, "--limit 0: give a number": {"--limit", "0"},
		"--limit 201": {"--limit", "201"}, "this member writes records to no file": nil} {
		if got := run(words...); got.Status == 0 || got.Out != "" || !strings.Contains(got.Err, part) {
			t.Errorf("%q: status %d, %s%s", words, got.Status, got.Out, got.Err)
		}
	}
}
