package rpc_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member"
)

// atOnce is a clock that stands still: no bucket fills.
type atOnce struct{ env.WallClock }

var stands = time.Now()

func (atOnce) Now() time.Time { return stands }

// raiseTo makes a feature level the active one of a member that is alone.
func raiseTo(t testing.TB, m *member.Member, l level.Level) {
	t.Helper()
	ctx := waitContext(t)
	propose := func(command *kv.Command) {
		t.Helper()
		result, err := m.Propose(ctx, command)
		if err = errors.Join(err, result.Err); err != nil {
			t.Fatal(err)
		}
	}
	propose(&kv.Command{Publish: &kv.PublishOp{Member: uint64(testMember), Name: "one", ClientURLs: []string{"http://127.0.0.1:2"},
		Level: l}})
	machine, release := m.Machine()
	of := machine.LevelView()
	release()
	propose(&kv.Command{Raise: &kv.RaiseOp{Level: l, Finalize: true, Of: of}})
}

// limitedMember is a member at the level that knows limits, whose clock stands still for them.
func limitedMember(t testing.TB) *server {
	t.Helper()
	m := startMember(t)
	raiseTo(t, m, level.Second)
	return serve(t, m, func(o *rpcOptions) { o.Clients, o.Clock = m.Clients(), atOnce{} })
}

func limitsOf(c *clientv3.Client) quoratepb.LimitsClient {
	return quoratepb.NewLimitsClient(c.ActiveConnection())
}

func of[T any](value T) *T { return &value }

func setLimit(t testing.TB, c *clientv3.Client, limit *quoratepb.Limit) *quoratepb.LimitState {
	t.Helper()
	answer, err := limitsOf(c).SetLimit(waitContext(t), &quoratepb.SetLimitRequest{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetState()
}

// refusedBy wants the error of a limit.
func refusedBy(t testing.TB, what, rule string, code codes.Code, err error) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), fmt.Sprintf("limit %q", rule)) {
		t.Errorf("%s: %v", what, err)
	}
}

// Ensure that limits hold on every way to write and to read, that the rest passes, and that the numbers are told.
func TestLimits(t *testing.T) {
	s := limitedMember(t)
	c, native, ctx := s.client(t), s.native(t), waitContext(t)
	if _, err := c.Put(ctx, "w/k", "v"); err != nil {
		t.Fatal(err)
	}
	setLimit(t, c, &quoratepb.Limit{Name: "writes", Prefix: []byte("w/"), WritesPerSecond: of[int64](0)})
	setLimit(t, c, &quoratepb.Limit{Name: "reads", Prefix: []byte("w/"), ReadsPerSecond: of[int64](0)})
	setLimit(t, c, &quoratepb.Limit{Name: "values", Prefix: []byte{}, ValueBytes: of[int64](8)})
	put, get := clientv3.OpPut("w/k", "v"), clientv3.OpGet("w/k")
	nested := clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet("x"), clientv3.OpTxn(nil, nil, []clientv3.Op{put})}, nil)
	for what, op := range map[string]clientv3.Op{
		"put": put, "put with its previous pair": clientv3.OpPut("w/k", "v", clientv3.WithPrevKV()), "nested": nested,
		"delete": clientv3.OpDelete("w/k"), "delete of all": clientv3.OpDelete("", clientv3.WithFromKey()),
		"txn": clientv3.OpTxn(nil, nil, []clientv3.Op{put}),
	} {
		_, err := c.Do(ctx, op)
		refusedBy(t, what, "writes", codes.ResourceExhausted, err)
		_, err = native.Do(ctx, op)
		refusedBy(t, what+" by the native client", "writes", codes.ResourceExhausted, err)
	}
	for what, op := range map[string]clientv3.Op{
		"get": get, "prefix": clientv3.OpGet("w", clientv3.WithPrefix()), "all": clientv3.OpGet("", clientv3.WithFromKey()),
		"serializable": clientv3.OpGet("w/k", clientv3.WithSerializable()), "txn": clientv3.OpTxn(nil, []clientv3.Op{get}, nil),
		"only compares": clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version("w/k"), "=", 0)}, nil, nil),
	} {
		_, err := c.Do(ctx, op)
		refusedBy(t, what, "reads", codes.ResourceExhausted, err)
	}
	history := quoratepb.NewHistoryClient(c.ActiveConnection())
	_, err := history.Versions(ctx, &quoratepb.VersionsRequest{Key: []byte("w/k")})
	refusedBy(t, "history", "reads", codes.ResourceExhausted, err)
	stream, err := pb.NewKVClient(c.ActiveConnection()).RangeStream(ctx, &pb.RangeRequest{Key: []byte("w"), RangeEnd: []byte("x")})
	if err == nil {
		_, err = stream.Recv()
	}
	refusedBy(t, "stream", "reads", codes.ResourceExhausted, err)
	_, err = c.Put(ctx, "x", "123456789")
	refusedBy(t, "a large value", "values", codes.InvalidArgument, err)

	granted, err := c.Grant(ctx, 60)
	if err == nil {
		_, err = c.KeepAliveOnce(ctx, granted.ID)
	}
	if _, again := c.Put(ctx, "x", "12345678"); err != nil || again != nil {
		t.Errorf("what no limit concerns: %v, %v", err, again)
	}
	list, err := limitsOf(c).ListLimits(ctx, &quoratepb.ListLimitsRequest{})
	if err != nil || len(list.GetLimits()) != 3 {
		t.Fatalf("list: %v, %v", list, err)
	}
	for _, state := range list.GetLimits() {
		if want := map[string]uint64{"reads": 8, "values": 1, "writes": 12}[state.GetLimit().GetName()]; state.GetRefused() != want {
			t.Errorf("%v, want %d refused", state, want)
		}
	}
	s.awaitMetric(t, `quorate_limited_requests_total{limit="writes"} 12`)
	for _, name := range []string{"writes", "reads", "values"} {
		if _, err := limitsOf(c).DeleteLimit(ctx, &quoratepb.DeleteLimitRequest{Name: name}); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Do(ctx, put); err != nil {
		t.Errorf("after the last limit: %v", err)
	}
	if strings.Contains(s.metrics(t), "quorate_limited_requests_total{") {
		t.Error("a metric of a limit is left")
	}
}

// Ensure that a rate lets as much pass as it says, and that the bytes of an answer count.
func TestLimits_rates(t *testing.T) {
	s := limitedMember(t)
	c, ctx := s.client(t), waitContext(t)
	setLimit(t, c, &quoratepb.Limit{Name: "w", Prefix: []byte{}, WritesPerSecond: of[int64](5)})
	setLimit(t, c, &quoratepb.Limit{Name: "r", Prefix: []byte("k"), ReadBytesPerSecond: of[int64](10)})
	for i := range 5 {
		if _, err := c.Put(ctx, "k", strings.Repeat("v", 50)); err != nil {
			t.Errorf("put %d: %v", i, err)
		}
	}
	_, err := c.Put(ctx, "k", "v")
	refusedBy(t, "put 5", "w", codes.ResourceExhausted, err)
	if !strings.Contains(err.Error(), "etcdserver: too many requests: ") || !strings.Contains(err.Error(), "try again in ") {
		t.Errorf("it says %v", err)
	}
	if _, err := c.Get(ctx, "k"); err != nil {
		t.Error(err)
	}
	_, err = c.Get(ctx, "k")
	refusedBy(t, "a second read", "r", codes.ResourceExhausted, err)
	if _, err := c.Get(ctx, "other"); err != nil {
		t.Error(err)
	}
}

// Ensure that a quota holds once the call that sets it returns, and what its refusal says.
func TestLimits_quota(t *testing.T) {
	s := limitedMember(t)
	c, native, ctx := s.client(t), s.native(t), waitContext(t)
	for i := range 10 {
		if _, err := c.Put(ctx, fmt.Sprintf("q/%d", i), "12345"); err != nil {
			t.Fatal(err)
		}
	}
	state := setLimit(t, c, &quoratepb.Limit{Name: "q", Prefix: []byte("q/"), QuotaKeys: of[int64](11), QuotaBytes: of[int64](100)})
	if state.GetCounting() || state.GetUsedKeys() != 10 || state.GetUsedBytes() != 80 {
		t.Errorf("set: %v", state)
	}
	if _, err := c.Put(ctx, "q/a", "1"); err != nil {
		t.Error(err)
	}
	_, err := c.Put(ctx, "q/b", "1")
	refusedBy(t, "a key too many", "q", codes.ResourceExhausted, err)
	if want := `limit "q" allows 11 keys and 100 bytes of keys and values with the prefix "q/", and there are 11 keys of 84 bytes`; !strings.Contains(err.Error(), want) {
		t.Errorf("it says %v", err)
	}
	if _, err := native.Put(ctx, "q/b", "1"); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "quota") {
		t.Errorf("by the native client: %v", err)
	}
	if _, err := c.Delete(ctx, "q/0"); err != nil {
		t.Error(err)
	}
	if _, err := c.Put(ctx, "q/b", "1"); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	s.awaitMetric(t, `quorate_limit_used_keys{limit="q"} 11`)
	s.awaitMetric(t, `quorate_limit_used_ratio{limit="q"} 1`)
}

// Ensure that only root sets, deletes and lists limits, that a limit of one user concerns nobody else, and root none, and that a
// caller without permission takes nothing from those who have it.
func TestLimits_users(t *testing.T) {
	s := limitedMember(t)
	enable(t, s)
	root, alice, nobody := s.as(t, "root"), s.as(t, "alice"), s.as(t, "")
	ctx := waitContext(t)
	for who, c := range map[string]*clientv3.Client{"alice": alice, "nobody": nobody} {
		_, err := limitsOf(c).SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: &quoratepb.Limit{Name: "x", User: "root", WritesPerSecond: of[int64](0)}})
		_, err2 := limitsOf(c).DeleteLimit(ctx, &quoratepb.DeleteLimitRequest{Name: "x"})
		_, err3 := limitsOf(c).ListLimits(ctx, &quoratepb.ListLimitsRequest{})
		if err == nil || err2 == nil || err3 == nil {
			t.Errorf("%s: %v, %v, %v", who, err, err2, err3)
		}
	}
	if _, err := root.Get(ctx, "a1"); err != nil { // it has logged in
		t.Fatal(err)
	}
	setLimit(t, root, &quoratepb.Limit{Name: "odd", User: "\x01 \u202e'\"\n", WritesPerSecond: of[int64](0)})
	setLimit(t, root, &quoratepb.Limit{Name: "alice", User: "alice", WritesPerSecond: of[int64](1), ReadsPerSecond: of[int64](1)})
	setLimit(t, root, &quoratepb.Limit{Name: "all", Prefix: []byte{}, WritesPerSecond: of[int64](1), ReadsPerSecond: of[int64](2)})
	for range 3 {
		for _, c := range []*clientv3.Client{alice, nobody} {
			if _, err := c.Put(ctx, "s1", "v"); err == nil || status.Code(err) == codes.ResourceExhausted || strings.Contains(err.Error(), "limit") {
				t.Errorf("without permission: %v", err)
			}
			if _, err := c.Get(ctx, "s1"); err == nil || strings.Contains(err.Error(), "limit") {
				t.Errorf("without permission: %v", err)
			}
		}
		for _, key := range []string{"a1", "s1"} {
			if _, err := root.Put(ctx, key, "v"); err != nil {
				t.Errorf("root: %v", err)
			}
			if _, err := root.Get(ctx, key); err != nil {
				t.Errorf("root: %v", err)
			}
		}
	}
	if _, err := alice.Put(ctx, "a1", "v"); err != nil {
		t.Errorf("the first of alice: %v", err)
	}
	if _, err := alice.Get(ctx, "a1"); err != nil {
		t.Errorf("the first of alice: %v", err)
	}
	_, err := alice.Put(ctx, "a1", "v")
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the second of alice: %v", err)
	}
	_, err = alice.Get(ctx, "a1")
	refusedBy(t, "the second of alice", "alice", codes.ResourceExhausted, err)
	if _, err := alice.Grant(ctx, 60); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a lease of alice: %v", err)
	}
}

// Ensure that a rule which is wrong is refused with what is wrong about it, and one below its level with who holds it back.
func TestLimits_Set_wrong(t *testing.T) {
	s := limitedMember(t)
	c, ctx := s.client(t), waitContext(t)
	writes := of[int64](1)
	for want, limit := range map[string]*quoratepb.Limit{
		"has no limit": nil, "name of a limit": {User: "u", WritesPerSecond: writes}, "neither a user nor a prefix": {Name: "a", WritesPerSecond: writes},
		"bounds nothing": {Name: "a", User: "u"}, "negative": {Name: "a", User: "u", WritesPerSecond: of[int64](-1)},
		"leave the user out": {Name: "a", User: "u", Prefix: []byte("p"), QuotaKeys: writes},
		"may have 512":       {Name: "a", Prefix: make([]byte, 513), WritesPerSecond: writes},
		"1 to 64":            {Name: strings.Repeat("a", 65), User: "u", WritesPerSecond: writes},
	} {
		_, err := limitsOf(c).SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: limit})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", limit, err, want)
		}
	}
	if _, err := limitsOf(c).DeleteLimit(ctx, &quoratepb.DeleteLimitRequest{Name: "none"}); status.Code(err) != codes.NotFound {
		t.Errorf("delete: %v", err)
	}
	below := serveMember(t, nil)
	_, err := limitsOf(below.client(t)).SetLimit(ctx, &quoratepb.SetLimitRequest{Limit: &quoratepb.Limit{Name: "a", User: "u", WritesPerSecond: writes}})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "level") {
		t.Errorf("below its level: %v", err)
	}
}

// Ensure that a native client which marks every proposal as repeated gets no more than others, that it is answered what was
// executed, and that a repeat shall come again if it may pass then, and else is refused: the client would ask for ever.
func TestLimits_nativeAgain(t *testing.T) {
	s := limitedMember(t)
	c := openPropose(t, s, 0xc1)
	session := c.open()
	c.propose(session, 1, put("k"), false)
	c.propose(session, 2, put("large"), false)
	c.propose(session, 3, put("none"), false)
	setLimit(t, s.client(t), &quoratepb.Limit{Name: "k", Prefix: []byte("k"), WritesPerSecond: of[int64](1)})
	setLimit(t, s.client(t), &quoratepb.Limit{Name: "large", Prefix: []byte("large"), ValueBytes: of[int64](0)})
	setLimit(t, s.client(t), &quoratepb.Limit{Name: "none", Prefix: []byte("none"), WritesPerSecond: of[int64](0)})
	const again, refused, applied = quoratepb.Answer_VERDICT_AGAIN, quoratepb.Answer_VERDICT_REFUSED, quoratepb.Answer_VERDICT_APPLIED
	for _, tc := range []struct {
		key      string
		sequence uint64
		again    bool
		want     quoratepb.Answer_Verdict
		code     codes.Code
	}{
		{"k", 4, false, applied, codes.OK}, // all that a second allows
		{"k", 5, false, refused, codes.ResourceExhausted},
		{"k", 6, true, again, codes.ResourceExhausted},
		{"k", 1, true, applied, codes.OK},
		{"large", 7, false, refused, codes.InvalidArgument},
		{"large", 8, true, refused, codes.InvalidArgument},
		{"large", 2, true, applied, codes.OK},
		{"none", 9, false, refused, codes.ResourceExhausted},
		{"none", 10, true, refused, codes.ResourceExhausted},
		{"none", 3, true, applied, codes.OK},
	} {
		a := c.propose(session, tc.sequence, put(tc.key), tc.again)
		if a.Verdict != tc.want || codes.Code(a.Code) != tc.code {
			t.Errorf("%s, sequence %d, again %v: got %v, want %v", tc.key, tc.sequence, tc.again, a, tc.want)
		}
	}
}
