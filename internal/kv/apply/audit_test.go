package apply_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

func auditPolicy(version uint64, text string) kv.Command {
	return kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditPolicy, Version: version, Policy: []byte(text)}}
}

func auditHead(member, chain, sequence uint64) kv.Command {
	return kv.Command{Audit: &kv.AuditOp{Kind: kv.AuditHead, Head: kv.AuditHeadRow{Member: member, Chain: chain, Sequence: sequence,
		At: int64(sequence) * 1000, Sum: bytes.Repeat([]byte{byte(sequence)}, kv.AuditSumBytes), File: []byte("audit.log")}}}
}

// newSecondBench is a member of a cluster of so many voters, all of which know feature level 2, and whose policy lets it rise.
func newSecondBench(t *testing.T, voters int) *bench {
	t.Helper()
	b := &bench{t: t, fs: filestest.NewCrashableMem()}
	b.openEngine()
	var config consensus.Config
	for id := range voters {
		config.Voters = append(config.Voters, consensus.MemberID(id+1))
		config.Members = append(config.Members, consensus.Member{ID: consensus.MemberID(id + 1)})
	}
	if err := apply.Bootstrap(b.eng, 77, config); err != nil {
		t.Fatal(err)
	}
	b.open()
	for id := range voters {
		b.knows(uint64(id+1), level.Second)
	}
	b.policy("now")
	return b
}

// raisedBench is such a member after the level has risen.
func raisedBench(t *testing.T, voters int) *bench {
	t.Helper()
	b := newSecondBench(t, voters)
	b.raiseToSecond()
	return b
}

// Ensure that below level 2 the commands of the audit change nothing, and look as those that do not decode.
func TestMachine_Apply_auditBelowLevel(t *testing.T) {
	b := newBench(t)
	for _, cmd := range []kv.Command{auditPolicy(0, "x"), auditHead(1, 1, 1)} {
		if res := b.do(cmd); !errors.Is(res.Err, kv.ErrBadCommand) {
			t.Errorf("got %v", res.Err)
		}
	}
	if got := b.m.Audit(); got.Version != 0 || len(got.Heads) != 0 {
		t.Errorf("got %+v", got)
	}
}

// Ensure that a policy is replaced only by a caller that has seen it, only by root, within its bound, also under alarms, and
// that policy and heads outlive a restart.
func TestMachine_Apply_audit(t *testing.T) {
	b := raisedBench(t, 1)
	b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kv.AlarmNoSpace}})
	short := auditHead(1, 7, 9)
	short.Audit.Head.Sum = short.Audit.Head.Sum[1:]
	forked := auditHead(1, 7, 3)
	forked.Audit.Head.Sum[5]++
	long := auditHead(1, 7, 9)
	long.Audit.Head.File = make([]byte, kv.MaxAuditFileBytes+1)
	for _, step := range []struct {
		name string
		cmd  kv.Command
		want error
	}{
		{"another version", auditPolicy(1, "x"), kv.ErrBadCommand},
		{"too long", auditPolicy(0, string(make([]byte, kv.MaxAuditPolicyBytes+1))), kv.ErrBadCommand},
		{"the first", auditPolicy(0, "one"), nil},
		{"the second of two", auditPolicy(0, "x"), kv.ErrBadCommand},
		{"the next", auditPolicy(1, "two"), nil},
		{"a head", auditHead(1, 7, 3), nil},
		{"the same again", auditHead(1, 7, 3), nil},
		{"another record with its number", forked, kv.ErrHeadBehind},
		{"one before it", auditHead(1, 7, 2), kv.ErrHeadBehind},
		{"a short sum", short, kv.ErrBadCommand},
		{"a long name", long, kv.ErrBadCommand},
		{"one of another chain", auditHead(1, 8, 1), nil},
		{"no record", auditHead(1, 9, 0), kv.ErrBadCommand},
	} {
		b.want(step.name, b.do(step.cmd), kv.Result{Err: step.want, Revision: 1})
	}
	for _, change := range []auth.Change{{Kind: auth.UserAdd, User: "root", Hash: []byte("h")},
		{Kind: auth.UserGrantRole, User: "root", Role: "root"}, {Kind: auth.Enable, Secret: make([]byte, 32)}} {
		if res := b.do(kv.Command{Auth: &change}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	if res := b.do(auditPolicy(2, "x")); !errors.Is(res.Err, auth.ErrUserEmpty) {
		t.Errorf("without a user: %v", res.Err)
	}
	if res := b.do(auditHead(1, 8, 2)); res.Err != nil {
		t.Errorf("a member's head: %v", res.Err)
	}
	want := b.m.Audit()
	if string(want.Policy) != "two" || want.Version != 2 || len(want.Heads) != 3 || want.Heads[2].Sequence != 2 {
		t.Errorf("got %+v", want)
	}
	b.flush()
	b.open()
	if diff := cmp.Diff(want, b.m.Audit(), cmpopts.IgnoreUnexported(apply.Audit{})); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	b.want("after it", b.do(auditHead(1, 8, 3)), kv.Result{Revision: b.m.Store().Revision()})
}

// Ensure that heads are bounded: the newest are kept, older ones thinned out, the first one stays; and a removed member makes
// room for another one.
func TestMachine_Apply_auditHeads_bounded(t *testing.T) {
	b := raisedBench(t, 1)
	const last = 5000
	for seq := uint64(1); seq <= last; seq++ {
		if res := b.do(auditHead(1, 7, seq)); res.Err != nil {
			t.Fatal(res.Err)
		}
		if n := len(b.m.Audit().Heads); n > 64 {
			t.Fatalf("%d heads after %d", n, seq)
		}
	}
	heads := b.m.Audit().Heads
	if len(heads) < 48 || heads[0].Sequence != 1 || heads[len(heads)-1].Sequence != last || heads[len(heads)-32].Sequence != last-31 ||
		!slices.IsSortedFunc(heads, func(a, b kv.AuditHeadRow) int { return int(a.Sequence) - int(b.Sequence) }) {
		t.Errorf("got %d: %v", len(heads), heads)
	}
	for member := uint64(2); member <= 64; member++ {
		b.do(auditHead(member, 1, 1))
	}
	if res := b.do(auditHead(65, 1, 1)); !errors.Is(res.Err, kv.ErrTooManyHeads) {
		t.Errorf("a member too many: %v", res.Err)
	}
	b.flush()
	b.open()
	if got := b.m.Audit(); len(got.Heads) != len(heads)+63 {
		t.Errorf("after a restart: %d heads, want %d", len(got.Heads), len(heads)+63)
	}
}

// Ensure that heads of a member with two outputs, which come in turn, are thinned out alike; that no repeat of one is added behind the
// other's; and that chains with one head each, as each start of an output that is no file begins one, have a bound, too.
func TestMachine_Apply_auditHeads_chains(t *testing.T) {
	b := raisedBench(t, 1)
	for seq := uint64(1); seq <= 1000; seq++ {
		for _, chain := range []uint64{7, 8} {
			if res := b.do(auditHead(1, chain, seq)); res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		before := len(b.m.Audit().Heads)
		if res := b.do(auditHead(1, 7, seq)); res.Err != nil || len(b.m.Audit().Heads) != before {
			t.Fatalf("a repeat of %d: %v, %d heads and %d", seq, res.Err, before, len(b.m.Audit().Heads))
		}
	}
	heads := b.m.Audit().Heads
	for _, chain := range []uint64{7, 8} {
		old := func(h kv.AuditHeadRow) bool { return h.Chain == chain && h.Sequence < 900 }
		if !slices.ContainsFunc(heads, old) {
			t.Errorf("all heads of chain %d are new: %v", chain, heads)
		}
	}
	for chain := uint64(100); chain < 300; chain++ {
		b.do(auditHead(1, chain, 1))
		if n := len(b.m.Audit().Heads); n > 64 {
			t.Fatalf("%d heads after chain %d", n, chain)
		}
	}
	if heads := b.m.Audit().Heads; heads[len(heads)-1].Chain != 299 || len(heads) < 48 {
		t.Errorf("got %v", heads)
	}
}
