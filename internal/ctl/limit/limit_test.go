package limit_test

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
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// fakeLimits is a member that keeps limits.
type fakeLimits struct {
	quoratepb.UnimplementedLimitsServer
	set    *quoratepb.Limit
	states []*quoratepb.LimitState
}

func (f *fakeLimits) SetLimit(_ context.Context, r *quoratepb.SetLimitRequest) (*quoratepb.SetLimitResponse, error) {
	if f.set = r.GetLimit(); f.set.GetName() == "refused" {
		return nil, status.Error(codes.InvalidArgument, "quorate: the limit bounds nothing")
	}
	return &quoratepb.SetLimitResponse{State: &quoratepb.LimitState{Limit: r.GetLimit(), UsedBytes: 2048, UsedKeys: 7}}, nil
}

func (f *fakeLimits) ListLimits(context.Context, *quoratepb.ListLimitsRequest) (*quoratepb.ListLimitsResponse, error) {
	return &quoratepb.ListLimitsResponse{Limits: f.states}, nil
}

func (f *fakeLimits) DeleteLimit(_ context.Context, r *quoratepb.DeleteLimitRequest) (*quoratepb.DeleteLimitResponse, error) {
	if r.GetName() != "a" {
		return nil, status.Error(codes.NotFound, "there is no limit of this name")
	}
	return &quoratepb.DeleteLimitResponse{}, nil
}

func start(t *testing.T) (f *fakeLimits, run func(args ...string) ctltest.Result) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	f = &fakeLimits{}
	quoratepb.RegisterLimitsServer(server, f)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return f, func(args ...string) ctltest.Result {
		return ctltest.RunAt(t, l.Addr().String(), append([]string{"limit"}, args...)...)
	}
}

func of(n int64) *int64 { return &n }

// Ensure that a command line becomes the rule that it says, and that a prefix that is empty is none that is absent.
func TestSet(t *testing.T) {
	f, run := start(t)
	run("set", "a", "--prefix", "/t/", "--writes", "100", "--value-bytes=64KiB", "--quota-bytes", "1GiB", "--quota-keys=0").
		Want(t, 0, "limit a is set: 100 writes/s, 64.0 KiB a value, 1.0 GiB in all, 0 keys; the prefix has 2.0 KiB, 7 keys\n", "")
	want := &quoratepb.Limit{Name: "a", Prefix: []byte("/t/"), WritesPerSecond: of(100), ValueBytes: of(64 << 10), QuotaBytes: of(1 << 30),
		QuotaKeys: of(0)}
	if !proto.Equal(f.set, want) {
		t.Errorf("got %v, want %v", f.set, want)
	}
	run("set", "b", "--for-user", "bob", "--prefix", "", "--reads", "1").Want(t, 0, "limit b is set: 1 reads/s\n", "")
	if f.set.Prefix == nil || f.set.GetUser() != "bob" {
		t.Errorf("got %v", f.set)
	}
	run("set", "c", "--for-user", "bob", "--read-bytes", "2MiB", "-o", "json").
		Want(t, 0, `{"name":"c","user":"bob","bounds":{"read-bytes":2097152},"refused":0}`+"\n", "")
	if f.set.Prefix != nil {
		t.Errorf("got %v", f.set)
	}
	f.set = nil
	for _, wrong := range [][]string{{"--writes", "1KiB"}, {"--writes", "-1"}, {"--writes", ""}, {"--writes", "1.5"},
		{"--quota-bytes", "9223372036854775808"}, {"--quota-bytes", "9999999TiB"}, {"--quota-bytes", "1KB"}, {"--quota-keys", "1MiB"}} {
		run(append([]string{"set", "x", "--prefix", "p"}, wrong...)...).Want(t, command.StatusUsage, "", wrong[0])
	}
	if f.set != nil {
		t.Errorf("a wrong line set %v", f.set)
	}
}

// Ensure that a list shows every part, and no bytes that steer a terminal.
func TestList(t *testing.T) {
	f, run := start(t)
	run("list").Want(t, 0, "NAME  USER  PREFIX  ALLOWS  HAS  REFUSED\n", "")
	f.states = []*quoratepb.LimitState{
		{Limit: &quoratepb.Limit{Name: "q", Prefix: []byte("\xff\x1b"), QuotaKeys: of(10)}, UsedKeys: 10, UsedBytes: 4096, Refused: 3},
		{Limit: &quoratepb.Limit{Name: "u", User: "\x1b[2J\u202e", WritesPerSecond: of(5)}},
		{Limit: &quoratepb.Limit{Name: "all", Prefix: []byte{}, QuotaBytes: of(1)}, Counting: true, UsedKeys: 2},
	}
	got := run("list")
	for _, want := range []string{`"\xff\x1b"`, "10 keys", "4.0 KiB, 10 keys", "5 writes/s", `""`, "counting, 2 keys so far", "every"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q is not in\n%s", want, got.Out)
		}
	}
	if strings.ContainsAny(got.Out, "\x1b\u202e") || got.Status != 0 {
		t.Errorf("got %q", got.Out)
	}
	json := run("list", "-o", "json").Out
	for _, want := range []string{`"prefix_base64":"/xs="`, `"used_keys":10`, `"counting":true`, `"prefix":""`} {
		if !strings.Contains(json, want) {
			t.Errorf("%s is not in %s", want, json)
		}
	}
}

func TestDelete(t *testing.T) {
	_, run := start(t)
	if got := run("delete", "a"); got.Status != 0 || got.Err != "deleted limit a\n" {
		t.Errorf("got %+v", got)
	}
	run("delete", "b").Want(t, command.StatusRefused, "", "no limit of this name")
	run("delete").Want(t, command.StatusUsage, "", "limit delete NAME")
}

// Ensure that the text of a refusal begins once with the name of the program.
func TestSet_refused(t *testing.T) {
	_, run := start(t)
	if r := run("set", "refused", "--prefix", "/a/"); r.Status != 1 || r.Err != "quorate: the limit bounds nothing\n" {
		t.Errorf("got %+v", r)
	}
}
