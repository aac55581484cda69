package rates_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/limits/rates"
)

var begun = time.Unix(1_700_000_000, 0)

func rule(name, user string, prefix *string, bounds map[kv.LimitKind]int64) kv.LimitRule {
	r := kv.LimitRule{Name: name, User: user}
	if prefix != nil {
		r.Prefixed, r.Prefix = true, []byte(*prefix)
	}
	for kind, most := range bounds {
		r.Bounds[kind] = kv.Bound{Set: true, Most: most}
	}
	return r
}

func of(prefix string) *string { return &prefix }

func put(key string, value int) *kv.Command {
	return &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: make([]byte, value)}}
}

// limiter asks one Limiter at times that it is given.
type limiter struct {
	rates.Limiter
	t   *testing.T
	set *rates.Set
	at  time.Duration
}

func (l *limiter) write(user string, command *kv.Command) *rates.Refusal {
	return l.Write(l.set, rates.Call{User: user, Now: begun.Add(l.at)}, command)
}

func (l *limiter) passes(what, user string, command *kv.Command) {
	l.t.Helper()
	if r := l.write(user, command); r != nil {
		l.t.Errorf("%s: %v", what, r)
	}
}

func (l *limiter) refuses(what, by, user string, command *kv.Command) *rates.Refusal {
	l.t.Helper()
	r := l.write(user, command)
	if r == nil || r.Rule != by {
		l.t.Errorf("%s: %v, want it refused by %q", what, r, by)
		return &rates.Refusal{}
	}
	return r
}

func TestLimiter_Write_rate(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{rule("batch", "bob", nil, map[kv.LimitKind]int64{kv.LimitWrites: 10})})}
	for i := range 10 {
		l.passes(fmt.Sprint("write ", i), "bob", put("k", 1))
	}
	r := l.refuses("the 11th of a second", "batch", "bob", put("k", 1))
	if r.Retry <= 0 || r.Retry > 100*time.Millisecond || !strings.Contains(r.Error(), "10 writes a second of each member: try again in 1") {
		t.Errorf("it says: %v", r)
	}
	l.passes("another user", "eve", put("k", 1))
	l.passes("nobody", "", put("k", 1))
	l.at += r.Retry
	l.passes("after the time that it was told", "bob", put("k", 1))
	l.refuses("one more", "batch", "bob", put("k", 1))
	l.at += time.Hour
	for range 10 {
		l.passes("an hour later", "bob", put("k", 1))
	}
	l.refuses("no more was saved than a second's", "batch", "bob", &kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 1}})
	l.passes("what ends a lease", "bob", &kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 1}})
}

func TestLimiter_Write_one(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{rule("slow", "", of(""), map[kv.LimitKind]int64{kv.LimitWrites: 1})})}
	l.passes("the first", "", put("k", 0))
	l.at = 999 * time.Millisecond
	l.refuses("within its second", "slow", "", put("k", 0))
	l.at = time.Second
	l.passes("a second later", "", put("k", 0))
}

func TestLimiter_Write_bytes(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{rule("big", "", of("b/"), map[kv.LimitKind]int64{kv.LimitWriteBytes: 1000})})}
	l.passes("five seconds at once", "", put("b/k", 4997))
	if r := l.refuses("behind it", "big", "", put("b/k", 0)); r.Retry < 3*time.Second || r.Retry > 5*time.Second {
		t.Errorf("it waits %v", r.Retry)
	}
	l.passes("elsewhere", "", put("c/k", 5000))
	l.at += 4 * time.Second
	l.refuses("four seconds later", "big", "", put("b/k", 0))
	l.at++
	l.passes("after them", "", put("b/k", 0))
	l.at += 10 * time.Millisecond
	l.passes("a gigabyte", "", put("b/k", 1<<30))
	l.at += 2 * time.Minute
	l.passes("a debt lasts a minute at most", "", put("b/k", 0))
}

func TestLimiter_Write_large(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{
		rule("values", "", of("v/"), map[kv.LimitKind]int64{kv.LimitValueBytes: 10}),
		rule("eve", "eve", nil, map[kv.LimitKind]int64{kv.LimitValueBytes: 0}),
	})}
	l.passes("as large as may be", "", put("v/k", 10))
	if r := l.refuses("larger", "values", "", put("v/k", 11)); r.Retry != 0 || r.Has != 11 {
		t.Errorf("%+v", r)
	}
	nested := &kv.Command{Txn: &kv.TxnOp{Else: []kv.Op{{Txn: &kv.TxnOp{Then: []kv.Op{{Put: put("v/k", 11).Put}}}}}}}
	l.refuses("in a branch of a branch", "values", "", nested)
	l.passes("elsewhere", "", put("w/k", 11))
	l.refuses("a rule of a user", "eve", "eve", put("w/k", 1))
	l.passes("an empty value", "eve", put("w/k", 0))
}

// Ensure that a request which one rule refuses takes nothing from the others.
func TestLimiter_Write_all(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{
		rule("all", "", of(""), map[kv.LimitKind]int64{kv.LimitWrites: 2}),
		rule("none", "", of("no/"), map[kv.LimitKind]int64{kv.LimitWrites: 0}),
	})}
	both := &kv.Command{Txn: &kv.TxnOp{Then: []kv.Op{{Put: put("k", 0).Put}, {Delete: &kv.DeleteOp{Key: []byte("n"), End: []byte("o")}}}}}
	for range 5 {
		if r := l.refuses("a deletion across it", "none", "", both); r.Retry != 0 || !strings.Contains(r.Error(), "allows no writes") {
			t.Errorf("%v", r)
		}
	}
	l.passes("one", "", put("k", 0))
	l.passes("two", "", put("k", 0))
	l.refuses("three", "all", "", put("k", 0))
	l.passes("a transaction that writes no key", "", &kv.Command{Txn: &kv.TxnOp{Compares: []kv.Compare{{Key: []byte("no/")}}}})
	counted := map[string]uint64{}
	l.Refused(l.set, func(rule string, refused uint64) { counted[rule] = refused })
	if counted["all"] != 1 || counted["none"] != 5 {
		t.Errorf("counted %v", counted)
	}
}

func TestLimiter_ReadAll(t *testing.T) {
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{
		rule("reads", "", of("r/"), map[kv.LimitKind]int64{kv.LimitReads: 2, kv.LimitReadBytes: 100}),
	})}
	read := func(key, end string) *rates.Refusal {
		call := rates.Call{Now: begun.Add(l.at)}
		each := func(read func(key, end []byte)) { read([]byte(key), []byte(end)) }
		r := l.ReadAll(l.set, call, each)
		if r == nil {
			l.Answered(l.set, call, 250, each)
		}
		return r
	}
	if read("q", "s") != nil || read("s", "") != nil || read("a", "r/") != nil {
		t.Error("a read is refused")
	}
	if r := read("r/1", ""); r == nil || r.Kind != kv.LimitReadBytes || r.Retry < time.Second {
		t.Errorf("behind 250 bytes: %v", r)
	}
	l.at = 1501 * time.Millisecond
	if r := read("r/1", ""); r != nil {
		t.Errorf("1.5 s later: %v", r)
	}
	if read("\x00", "\x00") == nil {
		t.Error("a read of all keys passes")
	}
	l.passes("a write", "", put("r/1", 0))
}

// Ensure that buckets of rules that stay are kept when others change, and that rules are found anew.
func TestLimiter_adopt(t *testing.T) {
	one := rule("one", "", of("a"), map[kv.LimitKind]int64{kv.LimitWrites: 1})
	l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{one})}
	l.passes("the first", "", put("a", 0))
	l.refuses("the second", "one", "", put("a", 0))
	l.set = rates.NewSet([]kv.LimitRule{one, rule("none", "", of("ab"), map[kv.LimitKind]int64{kv.LimitWrites: 0})})
	l.refuses("after a change", "one", "", put("a", 0))
	l.refuses("by the new one", "none", "", put("abc", 0))
	l.set = rates.NewSet([]kv.LimitRule{rule("none", "", of("ab"), map[kv.LimitKind]int64{kv.LimitWrites: 5})})
	l.passes("after its end", "", put("a", 0))
	l.passes("by a new bound", "", put("ab", 0))
	if rates.NewSet(nil) != nil || rates.NewSet(nil).Len() != 0 {
		t.Error("no rules are a set")
	}
}

// Ensure that no rule lets more pass than its rate, in any stretch of time, and that it lets as much pass, however requests come.
func TestLimiter_walk(t *testing.T) {
	for seed := range int64(20) {
		rng := rand.New(rand.NewSource(seed))
		most := int64(1 + rng.Intn(200))
		l := &limiter{t: t, set: rates.NewSet([]kv.LimitRule{rule("r", "", of("k"), map[kv.LimitKind]int64{kv.LimitWrites: most})})}
		var passed []time.Duration
		asked := 0
		for range 3000 {
			l.at += time.Duration(rng.Int63n(int64(2 * time.Second / time.Duration(most))))
			if rng.Intn(100) == 0 {
				l.at += 3 * time.Second
			}
			for range 1 + rng.Intn(4) {
				asked++
				if l.write("", put("k", 0)) == nil {
					passed = append(passed, l.at)
				}
			}
		}
		for i := range passed {
			for _, n := range []int{1, int(most), 2 * int(most)} {
				if i+n >= len(passed) {
					continue
				}
				took := passed[i+n] - passed[i]
				if allowed := float64(most)*(took.Seconds()+1) + 1; float64(n+1) > allowed+1e-6 {
					t.Fatalf("seed %d: %d pass in %v at %d a second", seed, n+1, took, most)
				}
			}
		}
		if least := min(float64(most)*l.at.Seconds(), float64(asked)) / 2; float64(len(passed)) < least {
			t.Errorf("seed %d: only %d of %d pass in %v at %d a second", seed, len(passed), asked, l.at, most)
		}
	}
}

// Ensure that the index finds what a walk over all rules finds.
func TestSet_againstWalk(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	text := func(n int) []byte { return []byte("\x00ab\xff\xff\xff")[rng.Intn(3):][:rng.Intn(n)] }
	for range 300 {
		var rules []kv.LimitRule
		for i := range 1 + rng.Intn(20) {
			rules = append(rules, rule(fmt.Sprintf("r%02d", i), "", of(string(text(4))), nil))
		}
		set := rates.NewSet(rules)
		key, end := append([]byte{'a'}, text(4)...), append([]byte{'a'}, text(4)...)
		var got []int
		collect := func(i int) { got = append(got, i) }
		set.OfKey(key, collect)
		slices.Sort(got)
		var want []int
		for i := range set.Rules {
			if bytes.HasPrefix(key, set.Rules[i].Prefix) {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v of %+v", key, got, want, rules)
		}
		got, want = nil, nil
		set.OfRange(key, end, collect)
		for i := range set.Rules {
			first, after := kv.PrefixRange(set.Rules[i].Prefix)
			open := bytes.Equal(after, []byte{0})
			low := key
			if bytes.Compare(first, low) > 0 {
				low = first
			}
			if bytes.Compare(low, end) < 0 && (open || bytes.Compare(low, after) < 0) {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q to %q: %v, want %v", key, end, got, want)
		}
	}
}

func BenchmarkLimiter_Write(b *testing.B) {
	var rules []kv.LimitRule
	for i := range kv.MaxLimitRules {
		rules = append(rules, rule(fmt.Sprintf("r%03d", i), "", of(strings.Repeat("k", i%32)), map[kv.LimitKind]int64{kv.LimitWrites: 1 << 40}))
	}
	for _, n := range []int{1, kv.MaxLimitRules} {
		b.Run(fmt.Sprint(n, " rules"), func(b *testing.B) {
			l, set := &rates.Limiter{}, rates.NewSet(rules[:n])
			command := put("kkkkkkkk/some/key", 100)
			b.ReportAllocs()
			for b.Loop() {
				if l.Write(set, rates.Call{Now: begun}, command) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}
