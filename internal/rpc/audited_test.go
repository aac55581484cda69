package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/rpc"
)

// paper is an output of records, in memory.
type paper struct {
	mu    sync.Mutex
	lines []byte
	fails error
}

// Write implements trail.Port.
func (p *paper) Write(lines []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return 0, p.fails
	}
	p.lines = append(p.lines, lines...)
	return len(lines), nil
}

func (p *paper) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails = err
}

// seen is what a test reads of a record.
type seen struct {
	Op, User, Method, Decision, Code, Key, End, About, From, Lease, Event, Write, Attempt string
	Revision, Value                                                                       int64
	Parts                                                                                 []map[string]any
}

func (p *paper) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.lines)
}

// await waits for a record that is as wanted.
func (p *paper) await(t *testing.T, what string, wanted func(r *seen) bool) seen {
	t.Helper()
	for ctx := waitContext(t); ; {
		for line := range bytes.Lines([]byte(p.text())) {
			var r seen
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			if wanted(&r) {
				return r
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is not recorded:\n%s", what, p.text())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// serveAudited is a real member at feature level 2 with a policy, whose records go to paper.
func serveAudited(t *testing.T, required bool, policy string) (*server, *paper) {
	t.Helper()
	to := new(paper)
	records := trail.New(trail.Options{Member: uint64(testMember), Bytes: 1 << 20, Deadline: 200 * time.Millisecond, Exempt: "root",
		Clock: env.WallClock{}, Logger: slog.New(slog.DiscardHandler),
		Sinks: []trail.SinkOptions{{Name: "paper", Port: to, Required: required, From: trail.NewChain()}}})
	records.Run()
	t.Cleanup(func() { records.Close(time.Second) })
	m := startMember(t)
	machine, release := m.Machine()
	of := machine.LevelView()
	release()
	for _, cmd := range []kv.Command{{Publish: &kv.PublishOp{Member: uint64(testMember), Name: "one",
		ClientURLs: []string{"http://127.0.0.1:2"}, Level: level.Own}},
		{LevelPolicy: &kv.LevelPolicyOp{Policy: level.Policy{Kind: level.PolicyNow}, Of: of}}} {
		result, err := m.Propose(waitContext(t), &cmd)
		if err = errors.Join(err, result.Err); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, m, func(o *rpc.Options) {
		o.Membership, o.Clients, o.Audit = m.Membership(), m.Clients(), records
	})
	if policy != "" {
		set(t, s, policy)
	}
	return s, to
}

func set(t *testing.T, s *server, policy string) {
	t.Helper()
	api := quoratepb.NewAuditClient(s.conn(t))
	now, err := api.Policy(waitContext(t), &quoratepb.AuditPolicyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.SetPolicy(waitContext(t), &quoratepb.SetAuditPolicyRequest{Policy: policy, Version: now.GetVersion()})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that each kind of call is recorded on each road, with who, from where, what and the outcome, and that no value and no
// password is.
func TestAudit_calls(t *testing.T) {
	s, to := serveAudited(t, false, `{"rules": [{"level": "request"}]}`)
	enable(t, s)
	root, alice, ctx := s.as(t, "root"), s.as(t, "alice"), waitContext(t)
	granted, err := alice.Grant(ctx, 600)
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"put":      func() error { _, err := alice.Put(ctx, "a1", "VALUE"); return err },
		"leased":   func() error { _, err := root.Put(ctx, "a9", "VALUE", clientv3.WithLease(granted.ID)); return err },
		"previous": func() error { _, err := alice.Put(ctx, "a1", "VALUE", clientv3.WithPrevKV()); return err },
		"txn": func() error {
			_, err := alice.Txn(ctx).If(clientv3.Compare(clientv3.Value("a2"), "=", "VALUE")).
				Then(clientv3.OpPut("a3", "VALUE"), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("a4")}, nil)).Commit()
			return err
		},
		"keep-alive": func() error { _, err := alice.KeepAliveOnce(ctx, granted.ID); return err },
		"lock": func() error {
			session, err := concurrency.NewSession(root)
			if err == nil {
				err = errors.Join(concurrency.NewMutex(session, "locks/").Lock(ctx), session.Close())
			}
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	_, denied := alice.Put(ctx, "s1", "VALUE")
	_, unread := alice.Get(ctx, "s1")
	_, login := root.Authenticate(ctx, "alice", "WRONG")
	if denied == nil || unread == nil || login == nil {
		t.Fatal("a call that must be denied is not")
	}
	watching, stop := context.WithCancel(ctx)
	if first := <-alice.Watch(watching, "a", clientv3.WithPrefix(), clientv3.WithCreatedNotify()); first.Err() != nil {
		t.Fatal(first.Err())
	}
	stop()
	if code, body := s.post(t, "/v3/kv/range", `{"key":"czE="}`); code == 200 {
		t.Fatal(body)
	}
	if _, err := root.MemberList(ctx); err != nil {
		t.Fatal(err)
	}
	is := func(want seen) func(r *seen) bool {
		return func(r *seen) bool {
			return r.Op == want.Op && r.User == want.User && r.Key == want.Key && r.End == want.End &&
				(r.Code == want.Code || want.Method == "LeaseKeepAlive") && // a stream ends as its client does

				strings.Contains(r.Method, want.Method) && strings.Contains(r.About, want.About) && strings.HasPrefix(r.From, "127.0.0.1:")
		}
	}
	for what, want := range map[string]seen{
		"a put":                  {Op: "put", User: "alice", Key: "a1", Method: "KV/Put"},
		"a put that was denied":  {Op: "put", User: "alice", Key: "s1", Code: "PermissionDenied"},
		"a read that was denied": {Op: "range", User: "alice", Key: "s1", Code: "PermissionDenied"},
		"a call by JSON":         {Op: "range", Key: "s1", Code: "InvalidArgument"},
		"a login":                {Op: "login", About: "name=alice"},
		"a login that failed":    {Op: "login", User: "root", About: "name=alice", Code: "InvalidArgument"},
		"a watch":                {Op: "watch", User: "alice", Key: "a", End: "b"},
		"a renewal":              {Op: "lease", User: "alice", Method: "LeaseKeepAlive"},
		"a lock":                 {Op: "txn", User: "root"},
		"a new user":             {Op: "auth", About: "name=alice", Method: "UserAdd"},
		"a permission":           {Op: "auth", About: "name=reader", Key: "a", End: "b", Method: "RoleGrantPermission"},
		"authentication":         {Op: "auth", Method: "AuthEnable"},
		"a list of members":      {Op: "status", User: "root", Method: "MemberList"},
		"a policy":               {Op: "audit", About: `policy={"rules": [{"level": "request"}]}`, Method: "SetPolicy"},
	} {
		got := to.await(t, what, is(want))
		if (got.Decision == "denied") != (want.Code != "") {
			t.Errorf("%s: the decision is %s", what, got.Decision)
		}
		if (want.Op == "put") && want.Code == "" && got.Revision == 0 {
			t.Errorf("%s: no revision", what)
		}
	}
	txn := to.await(t, "a transaction", func(r *seen) bool { return r.Op == "txn" && r.User == "alice" })
	if got, _ := json.Marshal(txn.Parts); string(got) != `[{"key":"a2","value_bytes":5,"what":"compare value ="},`+
		`{"key":"a3","value_bytes":5,"what":"put"},{"key":"a4","what":"delete"}]` {
		t.Errorf("got %s", got)
	}
	for _, secret := range []string{"VALUE", "WRONG", "alicepw", "rootpw"} {
		if strings.Contains(to.text(), secret) {
			t.Errorf("a record has %s:\n%s", secret, to.text())
		}
	}
}

// Ensure that writes of native clients are recorded, each by itself, and that all records of one have its name: what a member is
// asked to hold for others, and a repeat, too.
func TestAudit_native(t *testing.T) {
	s, to := serveAudited(t, false, `{"rules": [{"level": "metadata"}]}`)
	if _, err := s.native(t).Put(waitContext(t), "n", "VALUE"); err != nil {
		t.Fatal(err)
	}
	to.await(t, "a native put", func(r *seen) bool {
		return r.Op == "put" && r.Key == "n" && strings.Contains(r.Method, "Writer") && r.Write != "" && r.Attempt == ""
	})
	c := openPropose(t, s, 0xc1)
	session := c.open()
	c.send(&quoratepb.ProposeRequest{TermConfig: c.first.TermConfig, Records: []*quoratepb.Proposal{
		named(t, session, 1, put("w"))}})
	c.recv(func(r *quoratepb.ProposeResponse) bool { return len(r.Verdicts) > 0 })
	c.propose(session, 1, put("w"), true)
	witness := to.await(t, "a write that was to be held", func(r *seen) bool { return r.Key == "w" && r.Attempt == "witness" })
	repeat := to.await(t, "its repeat", func(r *seen) bool { return r.Key == "w" && r.Attempt == "repeat" })
	if witness.Write == "" || witness.Write != repeat.Write || strings.Count(to.text(), `"key":"w"`) != 2 {
		t.Errorf("got %+v and %+v of\n%s", witness, repeat, to.text())
	}
}

// Ensure that the record of a call which a limit refused says so, on each road; that of one that may not be made says denied.
func TestAudit_limited(t *testing.T) {
	s, to := serveAudited(t, false, `{"rules": [{"level": "metadata"}]}`)
	c, ctx := s.client(t), waitContext(t)
	setLimit(t, c, &quoratepb.Limit{Name: "none", Prefix: []byte("l"), WritesPerSecond: of[int64](0), ReadsPerSecond: of[int64](0)})
	setLimit(t, c, &quoratepb.Limit{Name: "quota", Prefix: []byte("q"), QuotaKeys: of[int64](0)})
	_, put := c.Put(ctx, "l1", "")
	_, native := s.native(t).Put(ctx, "l2", "")
	_, remove := c.Delete(ctx, "l3")
	_, read := c.Get(ctx, "l4")
	_, full := c.Put(ctx, "q5", "")
	for key, err := range map[string]error{"l1": put, "l2": native, "l3": remove, "l4": read, "q5": full} {
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: got %v", key, err)
		}
		r := to.await(t, key, func(r *seen) bool { return r.Key == key })
		if r.Decision != "refused" || r.Code != "ResourceExhausted" {
			t.Errorf("got %+v", r)
		}
	}
	enable(t, s)
	if _, err := s.as(t, "alice").Put(ctx, "l6", ""); err == nil {
		t.Errorf("got %v", err)
	}
	if r := to.await(t, "a put that is denied", func(r *seen) bool { return r.Key == "l6" }); r.Decision != "denied" {
		t.Errorf("got %+v", r)
	}
}

// Ensure that nothing is recorded without a policy but its changes, and by a policy only what it says; that a policy is refused
// which cannot be meant, or was changed meanwhile.
func TestAudit_policy(t *testing.T) {
	s, to := serveAudited(t, false, "")
	c, ctx := s.client(t), waitContext(t)
	api := quoratepb.NewAuditClient(s.conn(t))
	if _, err := c.Put(ctx, "before", ""); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[codes.Code]*quoratepb.SetAuditPolicyRequest{
		codes.InvalidArgument: {Policy: `{"rules": [{"level": "all"}]}`},
		codes.Aborted:         {Policy: `{"rules": []}`, Version: 3},
	} {
		if _, err := api.SetPolicy(ctx, r); status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	set(t, s, `{"rules": [{"level": "metadata", "prefixes": ["w"], "operations": ["put"]}]}`)
	for _, key := range []string{"x", "w"} {
		if _, err := c.Put(ctx, key, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Get(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	set(t, s, `{"rules": []}`)
	if _, err := c.Put(ctx, "w", ""); err != nil {
		t.Fatal(err)
	}
	to.await(t, "the end of the policy", func(r *seen) bool { return strings.Contains(r.About, `policy={"rules": []}`) && r.Code == "" })
	if n := strings.Count(to.text(), `"op":"put"`); n != 1 || strings.Contains(to.text(), `"op":"range"`) {
		t.Errorf("got %s", to.text())
	}
	if n := strings.Count(to.text(), `"op":"audit"`); n != 4 {
		t.Errorf("%d changes of the policy are recorded, with those that were refused", n)
	}
	answer, err := api.Policy(ctx, &quoratepb.AuditPolicyRequest{})
	if err != nil || answer.GetVersion() != 2 || len(answer.GetOutputs()) != 1 || answer.GetOutputs()[0].GetRecords() == 0 {
		t.Errorf("got %v, %v", answer, err)
	}
}

// Ensure that a call which has to be recorded is refused, and changes nothing, while a required output takes no records, on
// each road; that the exempt user's pass; and that all do once the output takes records again.
func TestAudit_blocked(t *testing.T) {
	s, to := serveAudited(t, true, `{"rules": [{"level": "metadata"}]}`)
	enable(t, s)
	root, alice, ctx := s.as(t, "root"), s.as(t, "alice"), waitContext(t)
	before, err := alice.Put(ctx, "a1", "")
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	to.fail(full)
	refused := func(err error) bool {
		return status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), full.Error()) ||
			errors.Is(err, context.DeadlineExceeded) // the client tries a read again and again
	}
	kvs := pb.NewKVClient(alice.ActiveConnection())
	var blocked error
	for blocked == nil && ctx.Err() == nil {
		_, blocked = alice.Put(ctx, "a2", "")
	}
	if !refused(blocked) {
		t.Fatalf("got %v", blocked)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, txn := alice.Txn(ctx).Then(clientv3.OpPut("a2", "")).Commit()
	_, remove := alice.Delete(ctx, "a1")
	_, read := kvs.Range(short, &pb.RangeRequest{Key: []byte("a1")})
	_, lease := alice.Grant(short, 60)
	for name, err := range map[string]error{"txn": txn, "delete": remove, "range": read, "lease": lease} {
		if !refused(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	after, err := root.Get(ctx, "a1")
	if err != nil || len(after.Kvs) != 1 || after.Kvs[0].ModRevision != before.Header.Revision {
		t.Errorf("root: got %v, %v", after, err)
	}
	if _, err := s.as(t, "root").Put(ctx, "a3", ""); err != nil {
		t.Errorf("root, who logs in: %v", err)
	}
	if _, err := pb.NewMaintenanceClient(alice.ActiveConnection()).Status(ctx, &pb.StatusRequest{}); err != nil {
		t.Errorf("a status: %v", err)
	}
	to.fail(nil)
	for err := errors.New(""); err != nil; {
		if ctx.Err() != nil {
			t.Fatal("calls are still refused")
		}
		_, err = alice.Put(ctx, "a4", "")
	}
	to.await(t, "the exempt user's put", func(r *seen) bool { return r.User == "root" && r.Key == "a3" })
}

// Ensure that a repeat of a native write which a member cannot record is answered what was executed, and is not told that nothing
// happened: the first attempt may have gone to another member.
func TestAudit_blockedAgain(t *testing.T) {
	s, to := serveAudited(t, true, `{"rules": [{"level": "metadata"}]}`)
	c, ctx := openPropose(t, s, 0xc1), waitContext(t)
	session := c.open()
	c.propose(session, 1, put("k"), false)
	to.fail(errors.New("no space left on device"))
	for blocked := error(nil); blocked == nil; {
		if ctx.Err() != nil {
			t.Fatal("nothing is refused")
		}
		_, blocked = s.client(t).Put(ctx, "k", "")
	}
	for _, tc := range []struct {
		sequence uint64
		again    bool
		want     quoratepb.Answer_Verdict
		code     codes.Code
	}{
		{2, false, quoratepb.Answer_VERDICT_REFUSED, codes.Unavailable},
		{3, true, quoratepb.Answer_VERDICT_AGAIN, codes.Unavailable},
		{1, true, quoratepb.Answer_VERDICT_APPLIED, codes.OK},
	} {
		a := c.propose(session, tc.sequence, put("k"), tc.again)
		if a.Verdict != tc.want || codes.Code(a.Code) != tc.code {
			t.Errorf("sequence %d, again %v: got %v, want %v", tc.sequence, tc.again, a, tc.want)
		}
	}
}
