package top_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

const cluster = 0xc1

// fakeMember serves Top with an answer of a test, and the list of its cluster.
type fakeMember struct {
	pb.UnimplementedClusterServer
	quoratepb.UnimplementedTopServer
	id      uint64
	address string
	list    *pb.MemberListResponse
	answer  *quoratepb.TopAnswer
	refusal error
	asked   []*quoratepb.TopRequest
}

func (f *fakeMember) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return f.list, nil
}

func (f *fakeMember) Get(_ context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error) {
	f.asked = append(f.asked, r)
	return f.answer, f.refusal
}

// startCluster starts members that have counted for ten seconds, and what is given.
func startCluster(t *testing.T, answers ...*quoratepb.TopAnswer) []*fakeMember {
	t.Helper()
	list := &pb.MemberListResponse{Header: &pb.ResponseHeader{ClusterId: cluster}}
	var all []*fakeMember
	for i, answer := range answers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f := &fakeMember{id: uint64(0xa1 + i), address: l.Addr().String(), list: list, answer: answer}
		answer.ClusterId, answer.MemberId = cluster, f.id
		list.Members = append(list.Members, &pb.Member{ID: f.id, Name: fmt.Sprint("m", i+1),
			ClientURLs: []string{"http://" + f.address}})
		server := grpc.NewServer(grpc.MaxSendMsgSize(math.MaxInt32))
		pb.RegisterClusterServer(server, f)
		quoratepb.RegisterTopServer(server, f)
		go server.Serve(l)
		t.Cleanup(server.Stop)
		all = append(all, f)
	}
	return all
}

func counts(operations, bytes, processor uint64) *quoratepb.TopCounts {
	return &quoratepb.TopCounts{Operations: operations, Bytes: bytes, ProcessorNs: processor}
}

func prefixRow(operation, prefix string, c *quoratepb.TopCounts) *quoratepb.TopRow {
	return &quoratepb.TopRow{Prefix: []byte(prefix), Operation: operation, Counts: c, Most: c.GetOperations() + c.GetWatchers()}
}

// twoMembers have counted for times that differ.
func twoMembers() (a, b *quoratepb.TopAnswer) {
	watchers := &quoratepb.TopCounts{Watchers: 7}
	a = &quoratepb.TopAnswer{CoversMs: 10_000, OneOf: 16, OneWatcherOf: 1,
		Prefixes: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{prefixRow("put", "/registry/pods/", counts(160_000,
			64_000_000, 4e9)),
			prefixRow("watch", "/registry/pods/", counts(8000, 4_000_000, 1e8)), prefixRow("range", "b/", counts(100, 900,
				1e6))},
			Total: counts(168_100, 68_000_900, 4.101e9)},
		Clients: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{{User: "kube", Host: "10.0.0.1", Counts: counts(168_100,
			68_000_900, 4.101e9),
			Most: 168_100}}, Total: counts(168_100, 68_000_900, 4.101e9)},
		Watched: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{prefixRow("", "/registry/pods/", watchers)}, Total: watchers},
		Watching: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{{User: "kube", Host: "10.0.0.1", Counts: watchers, Most: 7}},
			Total: watchers},
	}
	b = &quoratepb.TopAnswer{CoversMs: 5000, OneOf: 16, OneWatcherOf: 1,
		Prefixes: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{prefixRow("put", "/registry/pods/", counts(20_000, 8_000_000,
			5e8)),
			prefixRow("put", "a b/\x1b[2J\xff", counts(500, 5000, 2e7))}, Total: counts(20_600, 8_005_100, 5.2e8), Floor: 100},
		Clients: &quoratepb.TopRanking{Rows: []*quoratepb.TopRow{{Host: "10.0.0.2", Counts: counts(20_600, 8_005_100, 5.2e8),
			Most: 20_600}},
			Total: counts(20_600, 8_005_100, 5.2e8)},
		Watched: &quoratepb.TopRanking{}, Watching: &quoratepb.TopRanking{},
	}
	return a, b
}

func same(t *testing.T, name, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Ensure that the rates of members are added, the watchers stand beside them, and what is odd in a key is quoted.
func TestRun_table(t *testing.T) {
	a, b := twoMembers()
	members := startCluster(t, a, b)
	at := members[0].address
	prefixes := ctltest.RunAt(t, at, "top")
	same(t, "prefixes", prefixes.Out+prefixes.Err, `
2 of 2 members, the last 10s, by ops: 20.9k ops/s, 8.0 MiB/s, 51 % CPU, 7 watchers

OPS/S  BYTES/S     CPU   SHARE  WATCHERS  OPERATION  PREFIX
20.0k  7.6 MiB    50 %    96 %         -  put        /registry/pods/
  800  391 KiB   1.0 %   3.8 %         7  watch      /registry/pods/
  100   1000 B   0.4 %   0.5 %         -  put        "a b/\x1b[2J\xff"
   10     90 B  <0.1 %  <0.1 %         -  range      b/

Of 16 small calls one is counted, as 16; of large ones each: the first row is right within 2 %, mostly.
What is in no row has at most 20 ops/s each.
`[1:])
	clients := ctltest.RunAt(t, at, "top", "--clients", "--window", "5m", "--by", "watchers", "--rows", "1")
	same(t, "clients", clients.Out+clients.Err, `
2 of 2 members, the last 10s, by watchers: 20.9k ops/s, 8.0 MiB/s, 51 % CPU, 7 watchers

OPS/S  BYTES/S   CPU  SHARE  WATCHERS  USER  HOST
16.8k  6.5 MiB  41 %  100 %         7  kube  10.0.0.1

Of 16 small calls one is counted, as 16; of large ones each: the first row is right within 2 %, mostly.
`[1:])
	if r := members[1].asked[1]; r.GetWindow() != quoratepb.TopWindow_TOP_WINDOW_LONG ||
		r.GetBy() != quoratepb.TopWeight_TOP_WEIGHT_OPERATIONS {
		t.Errorf("asked for %v", r)
	}
}

type answerJSON struct {
	Members []struct{ Name, Error string }
	Rows    []struct {
		Prefix, Operation string
		Ops, Share        float64
		AtMost            float64 `json:"at_most"`
	}
	NotShown float64 `json:"not_shown_at_most"`
}

func runJSON(t *testing.T, at string, args ...string) (a answerJSON) {
	t.Helper()
	got := ctltest.RunAt(t, at, append([]string{"top", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.Out), &a); err != nil || got.Status != command.StatusOK {
		t.Fatalf("status %d, %v, %.400s%.400s", got.Status, err, got.Out, got.Err)
	}
	return a
}

// Ensure that programs get the bounds: what an item has at most, and what is not shown.
func TestRun_json(t *testing.T) {
	a, b := twoMembers()
	got := runJSON(t, startCluster(t, a, b)[0].address, "--rows", "2")
	if len(got.Rows) != 2 || got.Rows[0].Operation != "put" || got.Rows[0].Prefix != "/registry/pods/" ||
		got.Rows[0].Ops != 20_000 ||
		got.Rows[0].AtMost != 20_000 || got.Rows[1].Ops != 800 || got.Rows[1].AtMost != 820 || got.NotShown != 100 {
		t.Errorf("got %+v", got)
	}
}

// Ensure that members which lie do no harm: numbers without end, long texts, other members, and answers that become large.
func TestRun_hostile(t *testing.T) {
	good, liar := twoMembers()
	huge := counts(math.MaxUint64, math.MaxUint64, math.MaxUint64)
	liar.CoversMs, liar.Prefixes.Total, liar.Prefixes.Floor = -5, huge, math.MaxUint64
	liar.Prefixes.Rows[0].Counts, liar.Prefixes.Rows[0].Most = huge, 0
	long := strings.Repeat("\x1b[31m/", 20_000)
	liar.Prefixes.Rows[1].Prefix, liar.Prefixes.Rows[1].Operation = []byte(long), long[:30_000]
	other := &quoratepb.TopAnswer{}
	bomb := &quoratepb.TopAnswer{Prefixes: &quoratepb.TopRanking{Rows: make([]*quoratepb.TopRow, 200_000)}}
	for i := range bomb.Prefixes.Rows {
		bomb.Prefixes.Rows[i] = &quoratepb.TopRow{}
	}
	members := startCluster(t, good, liar, other, bomb)
	other.MemberId = 0xbad
	got := ctltest.RunAt(t, members[0].address, "top")
	if got.Status != command.StatusOK || len(got.Out) > 4000 || strings.Contains(got.Out, "\x1b") ||
		!strings.Contains(got.Out, "/registry/pods/") ||
		!strings.Contains(got.Out, "m3 is not counted: it is member bad of cluster c1") || !strings.Contains(got.Out, "m4 "+
		"is not counted: ") {
		t.Errorf("status %d, %d bytes: %.3000s%.400s", got.Status, len(got.Out), got.Out, got.Err)
	}
	if answer := runJSON(t, members[0].address); len(answer.Members) != 4 || answer.Rows[0].Share > 1 {
		t.Errorf("got %.1000v", answer)
	}
}

// Ensure that members that do not answer are named, and that the command ends with what is wrong if none does.
func TestRun_missing(t *testing.T) {
	a, b := twoMembers()
	members := startCluster(t, a, b)
	members[1].refusal = status.Error(codes.Unimplemented, "unknown service quorate.v1.Top")
	if got := ctltest.RunAt(t, members[0].address, "top"); got.Status != command.StatusOK ||
		!strings.Contains(got.Out, "1 of 2 members") || !strings.Contains(got.Out, "m2 is not counted: its build does not "+
		"count calls") {
		t.Errorf("status %d: %s%s", got.Status, got.Out, got.Err)
	}
	members[0].refusal = members[1].refusal
	ctltest.RunAt(t, members[0].address, "top").Want(t, command.StatusRefused, "", "all run builds without")
	for _, f := range members {
		f.refusal = status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	}
	ctltest.RunAt(t, members[0].address, "top").Want(t, command.StatusRefused, "", "permission denied: a client without "+
		"--user has no role")
}

// Ensure that wrong flags are refused with what there is.
func TestRun_usage(t *testing.T) {
	for _, row := range []struct{ flags, want string }{
		{"--by keys", "choose ops, bytes, cpu or watchers"}, {"--window 1h", "choose 10s or 5m"}, {"--rows 0", "choose 1 to " +
			"128"},
		{"--interval 1ms", "at least 500ms"}, {"-o yaml", "choose text or json"}, {"more", "usage: quorate top"},
	} {
		ctltest.Run(t, t.Context(), command.Streams{}, "", append([]string{"top"}, strings.Fields(row.flags)...)...).
			Want(t, command.StatusUsage, "", row.want)
	}
}

// cancelAfter ends a command after so many refreshes.
type cancelAfter struct {
	text bytes.Buffer
	left int
	end  context.CancelFunc
}

func (c *cancelAfter) Write(p []byte) (int, error) {
	if c.left--; c.left == 0 {
		c.end()
	}
	return c.text.Write(p)
}

// Ensure that a terminal gets the table again and again, in one place, and that an interrupt is a good end.
func TestRun_refresh(t *testing.T) {
	a, b := twoMembers()
	members := startCluster(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &cancelAfter{left: 2, end: cancel}
	s := ctltest.At(members[0].address)
	s.Terminal = true
	got := ctltest.RunTo(t, ctx, s, out, "top", "--interval", "500ms")
	if text := out.text.String(); got != command.StatusOK || strings.Count(text, "OPERATION") != 2 ||
		strings.Count(text, "A\x1b") != 0 ||
		!strings.Contains(text, "\x1b[10A2 of 2 members") {
		t.Errorf("status %d: %q", got, text)
	}
}
