package top_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/consoletest"
	"github.com/quorate/quorate/internal/console/top"
)

// member answers for all members.
type member struct {
	answer *quoratepb.TopAnswer
	err    error
	asked  *quoratepb.TopRequest
}

func (m *member) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	switch a := args.(type) {
	case *quoratepb.TopRequest:
		m.asked = a
		if m.err == nil {
			proto.Merge(reply.(proto.Message), m.answer)
		}
		return m.err
	case *pb.MemberListRequest:
		proto.Merge(reply.(proto.Message), &pb.MemberListResponse{Members: []*pb.Member{{ID: 0xa, Name: "m1"}, {ID: 0xb, Name: "<i>m2"}}})
		return nil
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

func (m *member) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}

func show(t *testing.T, m *member, query string) string {
	t.Helper()
	code, body := consoletest.Show(t, m, top.Page(), "/top"+query)
	if code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	return body
}

func wantAll(t *testing.T, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in: %.4000s", want, text)
		}
	}
}

// counted is what a member counted of one prefix, and of one client.
func counted(id uint64, operations uint64) *quoratepb.TopOfMember {
	counts := &quoratepb.TopCounts{Operations: operations, Bytes: 1024 * operations, ProcessorNs: 1000 * operations}
	return &quoratepb.TopOfMember{Id: id, Name: fmt.Sprint("m", id-9), Answer: &quoratepb.TopAnswer{MemberId: id, CoversMs: 10_000, OneOf: 16,
		OneWatcherOf: 1,
		Prefixes: &quoratepb.TopRanking{Total: counts, Floor: 20, Rows: []*quoratepb.TopRow{
			{Prefix: []byte("/registry/pods/"), Operation: "put", Counts: counts, Most: operations}}},
		Clients: &quoratepb.TopRanking{Total: counts, Rows: []*quoratepb.TopRow{{User: "alice", Host: "10.0.0.9", Counts: counts, Most: operations}}},
		Watched: &quoratepb.TopRanking{Total: &quoratepb.TopCounts{Watchers: 3}, Rows: []*quoratepb.TopRow{
			{Prefix: []byte("/registry/pods/"), Counts: &quoratepb.TopCounts{Watchers: 3}, Most: 3}}},
	}}
}

func twoMembers() *member {
	return &member{answer: &quoratepb.TopAnswer{Members: []*quoratepb.TopOfMember{counted(10, 5000), counted(11, 1000),
		{Id: 12, Name: "m3", Fault: "silent", FaultText: "it did not answer in time"}}}}
}

// Ensure that the answers of all members are added, that those of one can be had alone, and that what is estimated is said.
func TestPage(t *testing.T) {
	m := twoMembers()
	page := show(t, m, "")
	wantAll(t, page, "/registry/pods/", ">600<", "2 of 3 members", "the last 10.0 s", "Of 16 small calls one is counted", "CPU is an estimate",
		"m3: it did not answer in time", "quorate top --by ops --window 10s --through-member", "at most")
	if !m.asked.GetAllMembers() || m.asked.GetWindow() != quoratepb.TopWindow_TOP_WINDOW_SHORT {
		t.Errorf("asked %v", m.asked)
	}
	wantAll(t, show(t, m, "?member=b"), ">100<", "1 of 1 member", "&lt;i&gt;m2")
	wantAll(t, show(t, m, "?of=clients&by=cpu&window=5m"), "alice", "10.0.0.9", "--by cpu --window 5m --clients")
	if m.asked.GetWindow() != quoratepb.TopWindow_TOP_WINDOW_LONG || m.asked.GetBy() != quoratepb.TopWeight_TOP_WEIGHT_PROCESSOR {
		t.Errorf("asked %v", m.asked)
	}
	wantAll(t, show(t, m, "?by=watchers"), "watch</td>", ">6<")
}

// Ensure that a query that the page does not offer is one that it does, and that a member of an older build answers for itself.
func TestPage_odd(t *testing.T) {
	m := twoMembers()
	wantAll(t, show(t, m, "?by=keys&of=x&window=9y&member=zz&rows=-5"), ">600<", "--by ops")
	wantAll(t, show(t, m, "?member=77"), "Nothing was counted")
	wantAll(t, show(t, &member{answer: counted(10, 5000).Answer}, ""), "1 of 1 member", ">500<")
	wantAll(t, show(t, &member{answer: &quoratepb.TopAnswer{}}, ""), "Nothing was counted")
	wantAll(t, show(t, &member{err: status.Error(codes.PermissionDenied, "etcdserver: permission denied")}, ""), "Not permitted")
}

// Ensure that rows are bounded, that more can be had, and that nothing of a member is markup.
func TestPage_hostile(t *testing.T) {
	m := twoMembers()
	a := m.answer.Members[0].Answer
	for i := range 5000 {
		a.Prefixes.Rows = append(a.Prefixes.Rows, &quoratepb.TopRow{Prefix: []byte(fmt.Sprintf("<u>%d\u202e\x00", i)), Operation: "<i>",
			Counts: &quoratepb.TopCounts{Operations: math.MaxUint64, Bytes: math.MaxUint64, ProcessorNs: math.MaxUint64}, Most: math.MaxUint64})
	}
	a.CoversMs, m.answer.Members[2].FaultText = -7, "<script>alert(1)</script>"
	page := show(t, m, "")
	wantAll(t, page, "rows=50")
	if n := strings.Count(page, `class="share"`); n != 20 || strings.Contains(page, "<u>") || strings.Contains(page, "<i>") ||
		strings.Contains(page, "<script>alert") || strings.Contains(page, "\u202e") {
		t.Errorf("%d rows: %.3000s", n, page)
	}
	if n := strings.Count(show(t, m, "?rows=100000"), `class="share"`); n != 128 {
		t.Errorf("%d rows", n)
	}
}
