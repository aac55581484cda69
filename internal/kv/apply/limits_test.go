package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// newLimitedBench is a machine of one member at the level that knows limits, whose counts look at few keys at once.
func newLimitedBench(t testing.TB) *bench {
	b := &bench{t: t, fs: filestest.NewCrashableMem()}
	b.openEngine()
	config := consensus.Config{Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}}}
	if err := apply.Bootstrap(b.eng, 77, config); err != nil {
		t.Fatal(err)
	}
	b.openLimited()
	b.policy("now")
	b.knows(1, level.Second)
	if res := b.do(b.raise(level.Second)); res.Err != nil {
		t.Fatalf("%v %+v", res.Err, b.m.LevelView())
	}
	if b.m.ActiveLevel() != level.Second {
		t.Fatalf("the level is %d", b.m.ActiveLevel())
	}
	return b
}

const countedAtOnce = 3 * kv.WalkKeyBytes

func (b *bench) openLimited() {
	b.t.Helper()
	b.openWithOptions(apply.Options{LimitCountBytes: countedAtOnce})
}

// quota is a rule for a prefix; a negative bound is left out.
func quota(name, prefix string, mostBytes, mostKeys int64) kv.Command {
	rule := &kv.LimitRule{Name: name, Prefixed: true, Prefix: []byte(prefix)}
	if mostBytes >= 0 {
		rule.Bounds[kv.LimitQuotaBytes] = kv.Bound{Set: true, Most: mostBytes}
	}
	if mostKeys >= 0 {
		rule.Bounds[kv.LimitQuotaKeys] = kv.Bound{Set: true, Most: mostKeys}
	}
	return kv.Command{Limit: &kv.LimitOp{Set: rule}}
}

func deleteLimit(name string) kv.Command { return kv.Command{Limit: &kv.LimitOp{Delete: name}} }

func (b *bench) use(name string) apply.LimitUse {
	b.t.Helper()
	for _, u := range b.m.LimitUses() {
		if u.Rule.Name == name {
			return u
		}
	}
	b.t.Fatalf("no use of %s", name)
	return apply.LimitUse{}
}

// count counts what a quota bounds until it is done, and returns the number of steps.
func (b *bench) count(name string) (steps int) {
	b.t.Helper()
	for u := b.use(name); !u.Counted; u = b.use(name) {
		if res := b.do(kv.Command{Limit: &kv.LimitOp{Count: name, From: u.Next}}); res.Err != nil {
			b.t.Fatal(res.Err)
		}
		steps++
	}
	return steps
}

// Ensure that a quota refuses what would exceed it and nothing else, and that what a prefix has when its rule is set is counted in
// steps.
func TestMachine_Apply_quota(t *testing.T) {
	b := newLimitedBench(t)
	for i := range 10 {
		b.do(put(fmt.Sprintf("a/%02d", i), "12345")) // 4 + 5 bytes
	}
	b.do(put("b/", "other"))
	b.want("a rule is set", b.do(quota("a", "a/", 110, 11)), kv.Result{Revision: 12})
	if u := b.use("a"); u.Counted || u.Keys != 0 || string(u.Next) != "a/" {
		t.Errorf("before the count: %+v", u)
	}
	b.want("a count from elsewhere", b.do(kv.Command{Limit: &kv.LimitOp{Count: "a", From: []byte("a/05")}}), kv.Result{Revision: 12})
	b.do(put("a/99", strings.Repeat("x", 500))) // more than the quota, which does not hold yet
	b.do(del("a/99", ""))
	if steps := b.count("a"); steps != 4 {
		t.Errorf("10 keys are counted in %d steps", steps)
	}
	if u := b.use("a"); u.Keys != 10 || u.Bytes != 90 {
		t.Errorf("counted: %+v", u)
	}
	over := func(what string, cmd kv.Command) {
		t.Helper()
		before := b.m.Store().Revision()
		if res := b.do(cmd); !errors.Is(res.Err, kv.ErrOverQuota) || b.m.Store().Revision() != before {
			t.Errorf("%s: %+v", what, res)
		}
	}
	fits := func(what string, cmd kv.Command) {
		t.Helper()
		if res := b.do(cmd); res.Err != nil {
			t.Errorf("%s: %v", what, res.Err)
		}
	}
	over("too many bytes", put("a/10", strings.Repeat("x", 17)))
	fits("as many bytes as there may be", put("a/10", strings.Repeat("x", 16)))
	over("a key too many", put("a/11", ""))
	over("a byte more", put("a/10", strings.Repeat("x", 17)))
	fits("another prefix", put("b/1", strings.Repeat("x", 500)))
	fits("the same again", put("a/10", strings.Repeat("y", 16)))
	fits("a value that stays", kv.Command{Put: &kv.PutOp{Key: []byte("a/10"), IgnoreValue: true}})
	fits("less", put("a/10", "y"))
	over("two puts that each fit", txn(kv.TxnOp{Then: []kv.Op{
		{Put: &kv.PutOp{Key: []byte("a/00"), Value: []byte("1234567890123")}},
		{Txn: &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("a/01"), Value: []byte("1234567890123")}}}}},
	}}))
	over("a deletion of the same transaction makes no room", txn(kv.TxnOp{Then: []kv.Op{
		{Delete: &kv.DeleteOp{Key: []byte("a/00")}}, {Put: &kv.PutOp{Key: []byte("a/50")}},
	}}))
	fits("a branch that is not taken", txn(kv.TxnOp{Else: []kv.Op{{Put: &kv.PutOp{Key: []byte("a/50")}}}}))
	fits("a transaction that only compares", txn(kv.TxnOp{Compares: []kv.Compare{{Key: []byte("a/"), End: []byte("a0")}}}))
	fits("a deletion across prefixes", del("a/05", "b0"))
	if u := b.use("a"); u.Keys != 5 || u.Bytes != 45 {
		t.Errorf("after it: %+v", u)
	}
	fits("a lower quota than there is", quota("a", "a/", 0, -1))
	if u := b.use("a"); !u.Counted || u.Keys != 5 {
		t.Errorf("the same prefix is counted again: %+v", u)
	}
	over("a quota of nothing", put("a/00", "123456"))
	fits("as much as there is", put("a/00", "54321"))
	fits("no rule", deleteLimit("a"))
	fits("after it", put("a/00", "123456"))
	if res := b.do(deleteLimit("a")); !errors.Is(res.Err, kv.ErrLimitNotFound) {
		t.Errorf("deleted twice: %v", res.Err)
	}
	if b.m.Limits() != nil || len(b.m.LimitUses()) > 0 {
		t.Error("a rule is left")
	}
}

// Ensure that rules that are wrong, and too many, are refused on all members alike, and that 256 rules hold.
func TestMachine_Apply_limitRules(t *testing.T) {
	b := newLimitedBench(t)
	for _, rule := range []kv.LimitRule{
		{}, {Name: "a"}, {Name: "A", Prefixed: true}, {Name: "a", Prefixed: true},
		{Name: "a", Prefix: []byte("x"), User: "u", Bounds: writesOf(1)},
		{Name: "a", User: "\xff", Bounds: writesOf(1)}, {Name: "a", User: strings.Repeat("u", kv.MaxLimitUser+1), Bounds: writesOf(1)},
		{Name: strings.Repeat("n", kv.MaxLimitName+1), Prefixed: true, Bounds: writesOf(1)},
		{Name: "a", Prefixed: true, Prefix: make([]byte, kv.MaxLimitPrefix+1), Bounds: writesOf(1)},
		{Name: "a", User: "u", Prefixed: true, Bounds: [kv.LimitKinds]kv.Bound{kv.LimitQuotaKeys: {Set: true}}},
	} {
		if res := b.do(kv.Command{Limit: &kv.LimitOp{Set: &rule}}); !errors.Is(res.Err, kv.ErrBadCommand) || rule.Problem() == "" {
			t.Errorf("%+v: %v, %q", rule, res.Err, rule.Problem())
		}
	}
	for i := range kv.MaxLimitRules {
		prefix := strings.Repeat("k", i%8) // many with the same, all overlap
		if res := b.do(quota(fmt.Sprintf("r%03d", i), prefix, 1000, 20)); res.Err != nil {
			t.Fatal(res.Err)
		}
		b.count(fmt.Sprintf("r%03d", i))
	}
	if res := b.do(quota("one-more", "", 1, 1)); !errors.Is(res.Err, kv.ErrTooManyLimits) {
		t.Errorf("a rule too many: %v", res.Err)
	}
	for i := range 20 {
		if res := b.do(put(fmt.Sprintf("kkkkkkkk%02d", i), "v")); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	if res := b.do(put("kkkkkkkkx", "v")); !errors.Is(res.Err, kv.ErrOverQuota) {
		t.Errorf("a key too many: %v", res.Err)
	}
	for _, u := range b.m.LimitUses() {
		if u.Keys != 20 || u.Bytes != 20*11 {
			t.Errorf("%s: %+v", u.Rule.Name, u)
		}
	}
}

// Ensure that a step of a count is bounded over keys that were deleted, too: the tombstones that all members have count as looks,
// in the batch under way as in the store; and that those which a compaction has ended do not, since members delete them at their
// own pace.
func TestMachine_Apply_quotaOverDeletedKeys(t *testing.T) {
	const keys = 30
	for name, c := range map[string]struct {
		oneBatch, compact, delete bool
		steps                     int
	}{
		"in the store":           {steps: keys / 3},
		"in the batch under way": {oneBatch: true, steps: keys / 3},
		"compacted, not deleted": {compact: true, steps: 1},
		"compacted, and deleted": {compact: true, delete: true, steps: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newLimitedBench(t)
			for i := range keys {
				b.do(put(fmt.Sprintf("a/%02d", i), "12345"))
			}
			last := fmt.Sprintf("a/%02d", keys-1)
			delete, again, set := del("a/", "a0"), put(last, "x"), quota("a", "a/", 100, 100)
			if c.oneBatch {
				step := kv.Command{Limit: &kv.LimitOp{Count: "a", From: []byte("a/")}}
				b.apply(*b.entry(delete), *b.entry(again), *b.entry(set), *b.entry(step))
				if next := string(b.use("a").Next); next != "a/03" {
					t.Errorf("after one step the count stands at %q", next)
				}
				c.steps--
			} else {
				b.do(delete)
				b.do(again)
			}
			if c.compact {
				b.do(kv.Command{Compact: &kv.CompactOp{Revision: b.m.Store().Revision()}})
			}
			for done := !c.delete; !done; {
				var err error
				if done, err = b.m.Store().CompactStep(10); err != nil {
					t.Fatal(err)
				}
			}
			if !c.oneBatch {
				b.do(set)
			}
			if steps := b.count("a"); steps != c.steps {
				t.Errorf("counted in %d steps, want %d", steps, c.steps)
			}
			if u := b.use("a"); u.Keys != 1 || u.Bytes != int64(len(last)+1) {
				t.Errorf("counted %+v", u)
			}
		})
	}
}

func writesOf(most int64) (bounds [kv.LimitKinds]kv.Bound) {
	bounds[kv.LimitWrites] = kv.Bound{Set: true, Most: most}
	return bounds
}

// Ensure that below their level rules change nothing, not even the chain.
func TestMachine_Apply_limitsBelowLevel(t *testing.T) {
	b := newBench(t)
	b.want("below the level", b.do(quota("a", "", 0, 0)), kv.Result{Revision: 1, Err: kv.ErrBadCommand})
	b.want("a put after it", b.do(put("k", "v")), kv.Result{Revision: 2, Put: &kv.PutResult{}})
	if b.m.Limits() != nil {
		t.Error("there is a rule")
	}
}

// limitModel draws commands under rules, and knows what must come of them.
type limitModel struct {
	*bench
	rng   *rand.Rand
	rules map[string]kv.LimitRule
}

func (m *limitModel) key() string {
	return strings.Repeat("ab", 2)[:1+m.rng.Intn(3)] + fmt.Sprint(m.rng.Intn(12))
}

func (m *limitModel) value() string { return strings.Repeat("v", m.rng.Intn(20)) }

func (m *limitModel) putOp() *kv.PutOp {
	op := &kv.PutOp{Key: []byte(m.key()), Value: []byte(m.value()), PrevKV: m.rng.Intn(4) == 0}
	if m.rng.Intn(4) == 0 {
		op.Lease = kv.LeaseID(1 + m.rng.Intn(3))
	}
	if m.rng.Intn(8) == 0 {
		op.IgnoreValue, op.Value = true, nil
	}
	return op
}

func (m *limitModel) ops(depth int) (ops []kv.Op) {
	for range m.rng.Intn(4) {
		switch m.rng.Intn(4) {
		case 0:
			ops = append(ops, kv.Op{Delete: &kv.DeleteOp{Key: []byte(m.key()), End: []byte(m.key())}})
		case 1:
			if depth < 3 {
				ops = append(ops, kv.Op{Txn: &kv.TxnOp{Then: m.ops(depth + 1), Else: m.ops(depth + 1)}})
			}
		default:
			ops = append(ops, kv.Op{Put: m.putOp()})
		}
	}
	return ops
}

func (m *limitModel) command() kv.Command {
	switch m.rng.Intn(20) {
	case 0, 1:
		prefix := []string{"", "a", "ab", "aba", "ab1", "b"}[m.rng.Intn(6)]
		return quota(string(rune('p'+m.rng.Intn(5))), prefix, int64(m.rng.Intn(400))-50, int64(m.rng.Intn(30))-5)
	case 2:
		if m.rng.Intn(3) == 0 {
			return deleteLimit(string(rune('p' + m.rng.Intn(5))))
		}
		fallthrough
	case 3, 4:
		if uses := m.m.LimitUses(); len(uses) > 0 {
			u := uses[m.rng.Intn(len(uses))]
			return kv.Command{Limit: &kv.LimitOp{Count: u.Rule.Name, From: u.Next}}
		}
		return grant(kv.LeaseID(1 + m.rng.Intn(3)))
	case 5:
		return grant(kv.LeaseID(1 + m.rng.Intn(3)))
	case 6:
		return revoke(kv.LeaseID(1 + m.rng.Intn(3)))
	case 7:
		return del(m.key(), m.key())
	case 8:
		return kv.Command{Compact: &kv.CompactOp{Revision: m.m.Store().Revision() - kv.Revision(m.rng.Intn(5))}}
	case 9, 10, 11, 12:
		return txn(kv.TxnOp{Compares: []kv.Compare{{Key: []byte(m.key()), Target: kv.CompareVersion, Result: kv.CompareGreater}},
			Then: m.ops(0), Else: m.ops(0)})
	default:
		return kv.Command{Put: m.putOp()}
	}
}

func (m *limitModel) pairs() []kv.KeyValue {
	m.t.Helper()
	found, _, err := m.m.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}})
	if err != nil {
		m.t.Fatal(err)
	}
	return found.KVs
}

// recount compares all uses with what exists.
func (m *limitModel) recount() {
	m.t.Helper()
	pairs := m.pairs()
	for _, u := range m.m.LimitUses() {
		keys, size := int64(0), int64(0)
		for _, p := range pairs {
			if bytes.HasPrefix(p.Key, u.Rule.Prefix) && (u.Counted || bytes.Compare(p.Key, u.Next) < 0) {
				keys, size = keys+1, size+int64(len(p.Key)+len(p.Value))
			}
		}
		if u.Keys != keys || u.Bytes != size {
			m.t.Fatalf("%s: %d keys of %d bytes are counted (all: %v, next %q), and there are %d of %d", u.Rule.Name, u.Keys, u.Bytes,
				u.Counted, u.Next, keys, size)
		}
	}
}

// exceeded returns the rules whose quota a put would exceed by itself.
func (m *limitModel) exceeded(op *kv.PutOp) (exceeded bool) {
	more, keys := int64(len(op.Key)+len(op.Value)), int64(1)
	if now := m.get(string(op.Key)); now != nil {
		more, keys = int64(len(op.Value)-len(now.Value)), 0
	}
	if op.IgnoreValue {
		return false
	}
	for _, u := range m.m.LimitUses() {
		if !u.Counted || !bytes.HasPrefix(op.Key, u.Rule.Prefix) {
			continue
		}
		mostBytes, mostKeys := u.Rule.Bounds[kv.LimitQuotaBytes], u.Rule.Bounds[kv.LimitQuotaKeys]
		exceeded = exceeded || mostBytes.Set && more > 0 && u.Bytes+more > mostBytes.Most ||
			mostKeys.Set && keys > 0 && u.Keys+keys > mostKeys.Most
	}
	return exceeded
}

// step applies one command, and checks what came of it.
func (m *limitModel) step() {
	m.t.Helper()
	cmd := m.command()
	before := m.m.LimitUses()
	single := cmd.Put != nil && m.exceeded(cmd.Put)
	pairs := m.pairs()
	res := m.do(cmd)
	switch refused := errors.Is(res.Err, kv.ErrOverQuota); {
	case refused && !cmp.Equal(pairs, m.pairs()):
		m.t.Fatalf("%+v is refused, and changed something", cmd)
	case cmd.Put != nil && single && res.Err == nil, cmd.Put != nil && !single && refused:
		m.t.Fatalf("%+v: refused %v, want %v (%v)", cmd.Put, refused, single, res.Err)
	}
	m.recount()
	if cmd.Limit != nil {
		return
	}
	for i, u := range m.m.LimitUses() {
		for kind, has := range map[kv.LimitKind][2]int64{kv.LimitQuotaBytes: {before[i].Bytes, u.Bytes},
			kv.LimitQuotaKeys: {before[i].Keys, u.Keys}} {
			if bound := u.Rule.Bounds[kind]; bound.Set && u.Counted && has[1] > max(bound.Most, has[0]) {
				m.t.Fatalf("%s has %d after %d, and may have %d: %+v", u.Rule.Name, has[1], has[0], bound.Most, cmd)
			}
		}
	}
}

// Ensure that what quotas count is what a recount finds after every command, with rules that come, go and overlap, that no command
// exceeds a quota, that puts are refused exactly if they would, and that a member which applies the log in other batches, and
// starts anew in between, comes to the same.
func TestMachine_Apply_quotasAgainstRecount(t *testing.T) {
	over := 0
	for seed := range int64(30) {
		m := &limitModel{bench: newLimitedBench(t), rng: rand.New(rand.NewSource(seed))}
		first := len(m.log)
		for range 300 {
			m.step()
			if m.rng.Intn(60) == 0 {
				before := m.m.LimitUses()
				m.openLimited()
				if diff := cmp.Diff(before, m.m.LimitUses()); diff != "" {
					t.Fatalf("seed %d: after a start:\n%s", seed, diff)
				}
			}
		}
		twin := newLimitedBench(t)
		for at := first; at < len(m.log); {
			n := min(1+m.rng.Intn(20), len(m.log)-at)
			for _, res := range twin.apply(m.log[at : at+n]...) {
				if errors.Is(res.Err, kv.ErrOverQuota) {
					over++
				}
			}
			at += n
			if m.rng.Intn(5) == 0 {
				twin.openLimited()
			}
			// This member alone deletes what compactions have ended, and its tombstones with it.
			if _, err := twin.m.Store().CompactStep(m.rng.Intn(8)); err != nil {
				t.Fatal(err)
			}
		}
		if m.m.Chain().Sum != twin.m.Chain().Sum || !slices.EqualFunc(m.m.LimitUses(), twin.m.LimitUses(), sameUse) {
			t.Fatalf("seed %d: two members differ: %+v and %+v", seed, m.m.LimitUses(), twin.m.LimitUses())
		}
	}
	if t.Logf("%d commands were refused", over); over < 100 {
		t.Errorf("only %d commands were refused", over)
	}
}

func sameUse(a, b apply.LimitUse) bool { return cmp.Equal(a, b) }

// Ensure that no early answer is given to a put that a quota may refuse, and that one is given to others.
func TestMachine_Evaluate_quota(t *testing.T) {
	b := newLimitedBench(t)
	b.do(quota("a", "a/", 10, -1))
	b.count("a")
	id := openSession(b, 9, 1)
	exact := func(key string) bool {
		cmd := put(key, "v")
		e := &consensus.Entry{Index: b.index + 1, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil),
			ExactRevision: uint64(b.m.Store().Revision() + 1), Proposal: id(2)}
		_, certain := b.m.Evaluate(e)
		return certain
	}
	if exact("a/1") {
		t.Error("a put under a quota is answered before those before it are applied")
	}
	if !exact("b/1") {
		t.Error("another put is not answered early")
	}
}
