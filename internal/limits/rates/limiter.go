package rates

import (
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/kv"
)

// Refusal says which rule refuses a request, and for how long.
type Refusal struct {
	Rule  string
	Kind  kv.LimitKind
	Most  int64
	Has   int64         // of LimitValueBytes: the bytes of the value
	Retry time.Duration // after which it is worth another attempt; zero: not as it is
}

// Error implements error: a sentence for the caller.
func (r *Refusal) Error() string {
	if r.Kind == kv.LimitValueBytes {
		return fmt.Sprintf("limit %q allows values of %d bytes, and this one has %d", r.Rule, r.Most, r.Has)
	}
	what := map[kv.LimitKind]string{kv.LimitWrites: "writes", kv.LimitWriteBytes: "written bytes", kv.LimitReads: "reads",
		kv.LimitReadBytes: "read bytes"}[r.Kind]
	if r.Most == 0 {
		return fmt.Sprintf("limit %q allows no %s: ask an operator", r.Rule, what)
	}
	return fmt.Sprintf("limit %q allows %d %s a second of each member: try again in %v", r.Rule, r.Most, what,
		r.Retry.Round(time.Millisecond)+time.Millisecond)
}

const (
	// burst is for how long a bucket that was not used has saved its rate.
	burst = time.Second
	// mostDebt bounds for how long one request, or answer, that is larger than the burst makes the next ones wait.
	mostDebt = time.Minute
)

// bucket is a token bucket: the time at which it will be full again. It is full in the beginning.
type bucket struct{ full time.Duration }

// wait returns how long a request has to wait that takes n; zero: it may pass.
func (b *bucket) wait(n, most int64, now time.Duration) time.Duration {
	return max(0, b.full+cost(n, most)-now-max(burst, cost(n, most)))
}

// exhausted returns how long a request has to wait whose size does not matter; zero: it may pass.
func (b *bucket) exhausted(now time.Duration) time.Duration {
	if b.full < now+burst {
		return 0
	}
	return b.full - now - burst + 1
}

func (b *bucket) take(n, most int64, now time.Duration) {
	b.full = min(max(b.full, now)+cost(n, most), now+burst+mostDebt)
}

// cost is for how long a rate of most a second has to be saved for n.
func cost(n, most int64) time.Duration {
	n = min(n, int64(mostDebt/time.Second)*min(most, 1<<40)) // more than a minute's is a minute's
	return time.Duration(float64(n) / float64(most) * float64(time.Second))
}

// Buckets of a rule, by the kinds of its rates.
const rateKinds = int(kv.LimitReadBytes) + 1

// state is what a Limiter knows of one rule.
type state struct {
	buckets [rateKinds]bucket
	refused uint64
	marked  uint64 // the request that found it last
	bytes   int64  // of that request
}

// Limiter lets requests pass by the rules of a Set. The zero value is ready.
type Limiter struct {
	mu      sync.Mutex
	set     *Set
	begun   time.Time
	states  []state // of the rules of set
	request uint64
	touched []int // rules that the request under way is subject to
}

// Call is one request.
type Call struct {
	User string // empty: unknown
	Now  time.Time
}

// begin adopts the rules, and begins a request. The lock is held.
func (l *Limiter) begin(set *Set, now time.Time) time.Duration {
	if l.set != set {
		l.adopt(set)
	}
	if l.begun.IsZero() {
		l.begun = now
	}
	l.request++
	l.touched = l.touched[:0]
	return now.Sub(l.begun)
}

// adopt keeps the buckets of rules that stay. The lock is held.
func (l *Limiter) adopt(set *Set) {
	states := make([]state, set.Len())
	for i := range states {
		if at, found := l.set.Find(set.Rules[i].Name); found {
			states[i] = l.states[at]
		}
	}
	l.set, l.states = set, states
}

// touch notes that the request is subject to a rule with so many bytes. The lock is held.
func (l *Limiter) touch(user string, i int, bytes int64) {
	rule, s := &l.set.Rules[i], &l.states[i]
	if rule.User != "" && rule.User != user {
		return
	}
	if s.marked != l.request {
		s.marked, s.bytes = l.request, 0
		l.touched = append(l.touched, i)
	}
	s.bytes += bytes
}

// Write lets a command of a client pass, or says why not. Commands that change no keys, and grant no lease, always pass. As
// with permissions, both branches of a transaction count.
func (l *Limiter) Write(set *Set, call Call, command *kv.Command) *Refusal {
	if command.Put == nil && command.Delete == nil && command.Txn == nil && command.LeaseGrant == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.begin(set, call.Now)
	w := writes{l: l, user: call.User}
	w.command(command)
	if w.large != nil {
		return w.large
	}
	return l.pass(now, kv.LimitWrites, kv.LimitWriteBytes)
}

// pass takes what the request needs from all rules that it is subject to, or returns the refusal of the one that lets it wait
// longest. The lock is held.
func (l *Limiter) pass(now time.Duration, requests, bytes kv.LimitKind) *Refusal {
	var longest *Refusal
	for _, i := range l.touched {
		rule, s := &l.set.Rules[i], &l.states[i]
		refused := s.refusal(rule, requests, now)
		if refused == nil {
			refused = s.refusal(rule, bytes, now)
		}
		if refused != nil && (longest == nil || refused.Most == 0 || longest.Most > 0 && refused.Retry > longest.Retry) {
			longest = refused
		}
	}
	if longest != nil {
		at, _ := l.set.Find(longest.Rule)
		l.states[at].refused++
		return longest
	}
	for _, i := range l.touched {
		rule, s := &l.set.Rules[i], &l.states[i]
		s.take(rule, requests, 1, now)
		s.take(rule, bytes, s.bytes, now)
	}
	return nil
}

// refusal says why a rule does not let a request pass by one of its rates; nil: it does.
func (s *state) refusal(rule *kv.LimitRule, kind kv.LimitKind, now time.Duration) *Refusal {
	bound, b := rule.Bounds[kind], &s.buckets[kind]
	if !bound.Set {
		return nil
	}
	retry := time.Duration(0)
	switch {
	case bound.Most == 0:
		return &Refusal{Rule: rule.Name, Kind: kind}
	case kind == kv.LimitWrites || kind == kv.LimitReads:
		retry = b.wait(1, bound.Most, now)
	default:
		retry = b.exhausted(now)
	}
	if retry == 0 {
		return nil
	}
	return &Refusal{Rule: rule.Name, Kind: kind, Most: bound.Most, Retry: retry}
}

func (s *state) take(rule *kv.LimitRule, kind kv.LimitKind, n int64, now time.Duration) {
	if bound := rule.Bounds[kind]; bound.Set && bound.Most > 0 {
		s.buckets[kind].take(n, bound.Most, now)
	}
}

// Read lets a request that reads a range pass, or says why not. Answered takes note of its answer.
func (l *Limiter) Read(set *Set, call Call, key, end []byte) *Refusal {
	return l.ReadAll(set, call, func(read func(key, end []byte)) { read(key, end) })
}

// ReadAll is Read for one that reads several ranges.
func (l *Limiter) ReadAll(set *Set, call Call, each func(read func(key, end []byte))) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.begin(set, call.Now)
	l.reads(call.User, each, 0)
	return l.pass(now, kv.LimitReads, kv.LimitReadBytes)
}

// reads notes which rules a request that reads is subject to. The lock is held.
func (l *Limiter) reads(user string, each func(read func(key, end []byte)), bytes int64) {
	once := func(i int) {
		if l.states[i].marked != l.request {
			l.touch(user, i, bytes)
		}
	}
	for _, i := range l.set.unprefixed {
		once(i)
	}
	each(func(key, end []byte) { l.set.OfRange(key, end, once) })
}

// Answered takes note of the bytes of an answer, which the next reads wait for.
func (l *Limiter) Answered(set *Set, call Call, bytes int, each func(read func(key, end []byte))) {
	if !set.readBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.begin(set, call.Now)
	l.reads(call.User, each, int64(bytes))
	for _, i := range l.touched {
		l.states[i].take(&set.Rules[i], kv.LimitReadBytes, int64(bytes), now)
	}
}

// Refused calls visit with the name of each rule, and how many requests it has refused here.
func (l *Limiter) Refused(set *Set, visit func(rule string, refused uint64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set != set {
		l.adopt(set)
	}
	for i := range l.states {
		visit(l.set.Rules[i].Name, l.states[i].refused)
	}
}

// RefusedBy counts a request that the state machine has refused by a rule's quota.
func (l *Limiter) RefusedBy(set *Set, rule string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set != set {
		l.adopt(set)
	}
	if at, found := l.set.Find(rule); found {
		l.states[at].refused++
	}
}

// writes finds the rules that a command is subject to.
type writes struct {
	l     *Limiter
	user  string
	large *Refusal // of a value
}

func (w *writes) command(c *kv.Command) {
	size := int64(0)
	switch {
	case c.Put != nil:
		size = w.put(c.Put)
	case c.Delete != nil:
		size = w.delete(c.Delete)
	case c.Txn != nil:
		size = w.txn(c.Txn)
	}
	for _, i := range w.l.set.unprefixed {
		w.l.touch(w.user, i, size)
	}
}

func (w *writes) put(op *kv.PutOp) int64 {
	size := int64(len(op.Key) + len(op.Value))
	check := func(i int) {
		rule := &w.l.set.Rules[i]
		bound, has := rule.Bounds[kv.LimitValueBytes], int64(len(op.Value))
		if bound.Set && has > bound.Most && w.large == nil && (rule.User == "" || rule.User == w.user) {
			w.large = &Refusal{Rule: rule.Name, Kind: kv.LimitValueBytes, Most: bound.Most, Has: has}
			w.l.states[i].refused++
		}
	}
	w.l.set.OfKey(op.Key, func(i int) {
		w.l.touch(w.user, i, size)
		check(i)
	})
	for _, i := range w.l.set.unprefixed {
		check(i)
	}
	return size
}

func (w *writes) delete(op *kv.DeleteOp) int64 {
	size := int64(len(op.Key) + len(op.End))
	w.l.set.OfRange(op.Key, op.End, func(i int) { w.l.touch(w.user, i, size) })
	return size
}

func (w *writes) txn(op *kv.TxnOp) (size int64) {
	for _, branch := range [...][]kv.Op{op.Then, op.Else} {
		for i := range branch {
			switch o := &branch[i]; {
			case o.Put != nil:
				size += w.put(o.Put)
			case o.Delete != nil:
				size += w.delete(o.Delete)
			case o.Txn != nil:
				size += w.txn(o.Txn)
			}
		}
	}
	return size
}
