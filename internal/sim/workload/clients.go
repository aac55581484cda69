package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/proposals"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/users"
)

// opsPerKey is how often a key is used before its slot moves on to a new one: it keeps each history short enough for an exact
// search for a linear order.
const opsPerKey = 100

// Load is all clients of a world.
type Load struct {
	world    World
	suite    *check.Suite
	mix      Mix
	rng      *rand.Rand
	slots    []slot
	stopped  bool
	expects  bool          // native clients wait for all answers, and do not die
	expected time.Duration // since when
	watched  []*watcher
	tenants  []*tenant
	clients  []*client
	natives  []*native
	gone     map[consensus.MemberID]time.Duration // native clients that have ended, and when

	// Counts by outcome.
	Ops, Answered, Unanswered, Refused, Denied, OverQuota, Events, Renewals, Direct uint64
}

type slot struct{ generation, ops int }

// Start begins a load.
func Start(world World, suite *check.Suite, mix Mix, rng *rand.Rand) *Load {
	l := &Load{world: world, suite: suite, mix: mix, rng: rng, slots: make([]slot, mix.Keys),
		gone: map[consensus.MemberID]time.Duration{}}
	for id := range mix.Clients {
		c := &client{load: l, id: id, by: l.person(id), known: map[string]kv.Revision{}}
		l.clients = append(l.clients, c)
		world.After(l.pause(), c.next)
	}
	for id := range mix.Tenants {
		t := &tenant{load: l, id: 1000 + id, by: l.person(id)}
		l.tenants = append(l.tenants, t)
		world.After(l.pause(), t.begin)
	}
	l.startNatives()
	for id := range mix.Watchers {
		l.startWatcher(id)
	}
	if mix.CompactEvery > 0 {
		world.After(mix.CompactEvery, l.compact)
	}
	return l
}

// Stop lets every client finish its operation and begin no other one; native clients close. Watchers go on.
func (l *Load) Stop() {
	l.stopped = true
	for _, n := range l.natives {
		n.end(true)
	}
}

func (l *Load) pause() time.Duration {
	return time.Duration(float64(l.mix.Think) * min(-math.Log(1-l.rng.Float64()), 10))
}

// key draws a slot and returns its present key.
func (l *Load) key() string {
	at := l.rng.IntN(len(l.slots))
	s := &l.slots[at]
	if s.ops++; s.ops > opsPerKey {
		s.generation, s.ops = s.generation+1, 1
	}
	return fmt.Sprintf("k%02d.%03d", at, s.generation)
}

// retire moves a slot on, because its key has a delete of unknown outcome, which makes searches long.
func (l *Load) retire(key string) {
	var at, generation int
	if _, err := fmt.Sscanf(key, "k%02d.%03d", &at, &generation); err == nil && l.slots[at].generation == generation {
		l.slots[at] = slot{generation: generation + 1}
	}
}

// target draws a running member, or returns nil.
func (l *Load) target() Target {
	all := l.world.Targets()
	if len(all) == 0 {
		return nil
	}
	for range 4 {
		if t := all[l.rng.IntN(len(all))]; t.Life() != 0 {
			return t
		}
	}
	return nil
}

// client does one operation after another.
type client struct {
	load    *Load
	id      int
	by      *users.Person // nil in a world without users
	through bool          // since Load.Expect, it was answered or rightly refused
	count   int
	target  Target
	attempt int
	known   map[string]kv.Revision // mod revisions seen, for compare-and-swap
}

// again schedules the next operation.
func (c *client) again() {
	if !c.load.stopped {
		c.load.world.After(c.load.pause(), c.next)
	}
}

func (c *client) value() []byte {
	c.count++
	value := fmt.Appendf(nil, "v%d.%d", c.id, c.count)
	if bulk := c.load.mix.Bulk; bulk > 0 && c.load.rng.IntN(8) == 0 {
		value = append(value, make([]byte, bulk)...)
	}
	return value
}

// next chooses a member and an operation.
func (c *client) next() {
	l := c.load
	if l.stopped {
		return
	}
	if c.target == nil || c.target.Life() == 0 || (l.rng.IntN(50) == 0 && c.id >= l.mix.Readers) {
		c.target = l.target()
	}
	if c.target == nil {
		c.again()
		return
	}
	l.Ops++
	if c.by.MustLogin() {
		c.logIn(c.target, c.again)
		return
	}
	m := &l.mix
	if c.id < m.Readers {
		c.get()
		return
	}
	draw := l.rng.IntN(m.Put + m.Get + m.Local + m.CAS + m.Delete + m.Txn + m.Range)
	for _, choice := range []struct {
		weight int
		do     func()
	}{{m.Put, c.put}, {m.Get, c.get}, {m.Local, c.local}, {m.CAS, c.cas}, {m.Delete, c.remove}, {m.Txn, c.txn},
		{m.Range, c.wipe}} {
		if draw < choice.weight {
			choice.do()
			return
		}
		draw -= choice.weight
	}
}

// overQuota reports whether an answer refuses a write by a quota: it has changed nothing, and never will. The model judges,
// where the write has its place in the log, whether it was to be refused.
func (l *Load) overQuota(command *kv.Command, r *kv.Result) bool {
	if !errors.Is(r.Err, kv.ErrOverQuota) {
		return false
	}
	l.OverQuota++
	l.suite.Acks.Refused(command)
	return true
}

// propose sends a command and calls done with the answer, or with answered false: then the command may have been applied or
// not. A command that is refused by a quota has no outcome to tell.
func (c *client) propose(what string, command *kv.Command, done func(r kv.Result, answered bool)) {
	l := c.load
	l.world.Operation(c.id, what)
	c.attempt++
	attempt, life, over := c.attempt, c.target.Life(), false
	finish := func(r kv.Result, answered bool) {
		if over || attempt != c.attempt {
			return
		}
		over = true
		l.world.Answer(c.id, answered, r.Revision)
		if answered {
			l.Answered++
		} else {
			l.Unanswered++
		}
		if !answered || !l.overQuota(command, &r) {
			done(r, answered)
		}
		c.again()
	}
	target, since := c.target, l.suite.Permits.Present()
	who := c.by.Who()
	abandon := target.Propose(c.by, command, func(r kv.Result, err error) {
		if err == nil && errors.Is(r.Err, kv.ErrSessionUnknown) {
			l.suite.Report("applied-once", fmt.Sprintf("a waiting client was told that its session is unknown (%s)", what))
		}
		if c.by != nil && c.judge(since, &who, command, &r, err) {
			l.world.After(time.Duration(l.rng.IntN(1000))*time.Microsecond, func() {
				if !over && attempt == c.attempt {
					over = true
					c.again()
				}
			})
			return
		}
		if errors.Is(err, proposals.ErrTooMany) || errors.Is(err, proposals.ErrNoLeader) { // nothing happened
			l.Refused++
			l.suite.Acks.Refused(command)
		}
		// The answer takes a moment to arrive, in which other events happen.
		l.world.After(time.Duration(l.rng.IntN(1000))*time.Microsecond, func() { finish(r, err == nil) })
	})
	c.watch(target, life, func() bool { return over }, func() {
		abandon()
		finish(kv.Result{}, false)
	})
}

// watch gives up an operation when its member crashes or the client's patience ends.
func (c *client) watch(target Target, life int, over func() bool, giveUp func()) {
	l := c.load
	deadline := l.world.Now() + l.mix.Patience
	step := max(l.mix.Patience/10, time.Millisecond)
	var look func()
	look = func() {
		switch {
		case over():
		case target.Life() != life || l.world.Now() >= deadline:
			giveUp()
		default:
			l.world.After(step, look)
		}
	}
	l.world.After(step, look)
}

func (c *client) put() {
	l, key, value, begin := c.load, c.load.key(), c.value(), c.load.world.Now()
	command := &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: value, PrevKV: l.rng.IntN(4) == 0}}
	c.propose("put "+key+" "+string(value), command, func(r kv.Result, answered bool) {
		c.wrote(check.OpPut, key, string(value), begin, r, answered, true)
	})
}

// wrote reports a write of one key to the checkers.
func (c *client) wrote(
	kind check.OperationKind, key, value string, begin time.Duration, r kv.Result, answered, done bool,
) {
	s, now := c.load.suite, c.load.world.Now()
	if answered && r.Err != nil {
		s.Report("state-machine", fmt.Sprintf("writing %q was rejected: %v", key, r.Err))
		return
	}
	s.Record(check.Operation{Client: c.id, Kind: kind, Key: key, Value: value, Begin: begin, End: now,
		Answered: answered, Done: done, Revision: r.Revision})
	if !answered {
		delete(c.known, key)
		if kind == check.OpDelete {
			c.load.retire(key)
		}
		return
	}
	if kind == check.OpDelete {
		delete(c.known, key)
	} else {
		c.known[key] = r.Revision
		s.Acks.Add(key, value, r.Revision)
	}
	s.Wrote(begin, now, r.Revision, key, done)
}

func (c *client) get() {
	l, key, begin := c.load, c.load.key(), c.load.world.Now()
	l.world.Operation(c.id, "get "+key)
	if c.by != nil {
		c.getBy(key, true)
		return
	}
	c.attempt++
	attempt, target, life, over := c.attempt, c.target, c.target.Life(), false
	finish := func() {
		over = true
		c.again()
	}
	target.Read(func() {
		l.world.After(time.Duration(l.rng.IntN(300))*time.Microsecond, func() {
			if over || attempt != c.attempt || target.Life() != life {
				return
			}
			c.show(target, key, begin, true)
			finish()
		})
	})
	c.watch(target, life, func() bool { return over }, func() {
		l.Unanswered++
		finish()
	})
}

// local is a serializable read: it may be old, but it must show the state at the revision that it reports.
func (c *client) local() {
	key := c.load.key()
	if c.by != nil {
		c.getBy(key, false)
		return
	}
	c.show(c.target, key, c.load.world.Now(), false)
	c.again()
}

// show reads a key from a member's store and reports it to the checkers.
func (c *client) show(target Target, key string, begin time.Duration, linearizable bool) {
	result, revision, err := target.Range(&kv.RangeOp{Key: []byte(key)})
	if err != nil {
		c.load.suite.Report("state-machine", fmt.Sprintf("reading %q: %v", key, err))
		return
	}
	c.saw(key, begin, &result, revision, linearizable)
}

// saw reports the result of a read to the checkers.
func (c *client) saw(key string, begin time.Duration, result *kv.RangeResult, revision kv.Revision, linearizable bool) {
	l := c.load
	var got *kv.KeyValue
	if len(result.KVs) > 0 {
		got = &result.KVs[0]
		c.known[key] = got.ModRevision
	} else {
		delete(c.known, key)
	}
	now := l.world.Now()
	l.Answered++
	l.world.Answer(c.id, true, revision)
	l.suite.Read(begin, now, revision, key, got, linearizable)
	if !linearizable {
		return
	}
	op := check.Operation{Client: c.id, Kind: check.OpGet, Key: key, Begin: begin, End: now, Answered: true}
	if got != nil {
		op.Done, op.Value, op.Revision = true, string(got.Value), got.ModRevision
	}
	l.suite.Record(op)
}

func (c *client) cas() {
	l, key, value, begin := c.load, c.load.key(), c.value(), c.load.world.Now()
	expect := c.known[key]
	command := &kv.Command{Txn: &kv.TxnOp{
		Compares: []kv.Compare{{Key: []byte(key), Target: kv.CompareMod, Result: kv.CompareEqual, Number: int64(expect)}},
		Then:     []kv.Op{{Put: &kv.PutOp{Key: []byte(key), Value: value}}},
		Else:     []kv.Op{{Range: &kv.RangeOp{Key: []byte(key)}}},
	}}
	c.propose("cas "+key+" "+string(value), command, func(r kv.Result, answered bool) {
		done := answered && r.Txn != nil && r.Txn.Succeeded
		op := check.Operation{Client: c.id, Kind: check.OpCAS, Key: key, Value: string(value), Expect: expect,
			Begin: begin, End: l.world.Now(), Answered: answered, Done: done, Revision: r.Revision}
		l.suite.Record(op)
		delete(c.known, key)
		if !answered {
			return
		}
		if done {
			c.known[key] = r.Revision
			l.suite.Acks.Add(key, string(value), r.Revision)
		}
		l.suite.Wrote(begin, l.world.Now(), r.Revision, key, done)
	})
}

func (c *client) remove() {
	key, begin := c.load.key(), c.load.world.Now()
	command := &kv.Command{Delete: &kv.DeleteOp{Key: []byte(key), PrevKV: c.load.rng.IntN(2) == 0}}
	c.propose("delete "+key, command, func(r kv.Result, answered bool) {
		done := answered && r.Delete != nil && r.Delete.Deleted > 0
		c.wrote(check.OpDelete, key, "", begin, r, answered, done)
	})
}

// txn writes two keys and reads a range, all at one revision.
func (c *client) txn() {
	l, one, two, begin := c.load, c.load.key(), c.load.key(), c.load.world.Now()
	if one == two {
		c.put()
		return
	}
	a, b := c.value(), c.value()
	command := &kv.Command{Txn: &kv.TxnOp{Then: []kv.Op{
		{Put: &kv.PutOp{Key: []byte(one), Value: a}},
		{Range: &kv.RangeOp{Key: []byte("r/"), End: []byte("r0")}},
		{Txn: &kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte(two), Value: b}}}}},
	}}}
	c.propose("txn "+one+" "+two, command, func(r kv.Result, answered bool) {
		for _, w := range []struct{ key, value string }{{one, string(a)}, {two, string(b)}} {
			l.suite.Record(check.Operation{Client: c.id, Kind: check.OpPut, Key: w.key, Value: w.value, Begin: begin,
				End: l.world.Now(), Answered: answered, Done: true, Revision: r.Revision})
			if answered {
				l.suite.Acks.Add(w.key, w.value, r.Revision)
				c.known[w.key] = r.Revision
			}
		}
		if answered {
			l.suite.Wrote(begin, l.world.Now(), r.Revision, one, true)
		}
	})
}

// wipe fills a small range, or deletes all of it at one revision.
func (c *client) wipe() {
	l, begin := c.load, c.load.world.Now()
	command := &kv.Command{Delete: &kv.DeleteOp{Key: []byte("r/"), End: []byte("r0")}}
	if l.rng.IntN(3) > 0 {
		key := fmt.Appendf(nil, "r/%d", l.rng.IntN(8))
		command = &kv.Command{Put: &kv.PutOp{Key: key, Value: c.value()}}
	}
	c.propose("range", command, func(r kv.Result, answered bool) {
		if answered {
			changed := r.Put != nil || (r.Delete != nil && r.Delete.Deleted > 0)
			l.suite.Wrote(begin, l.world.Now(), r.Revision, "r/", changed)
		}
	})
}

// compact compacts history up to a revision that is not too new.
func (l *Load) compact() {
	if l.stopped {
		return
	}
	l.world.After(l.mix.CompactEvery, l.compact)
	t := l.target()
	now := l.suite.Model().Revision
	if t == nil || now < 20 {
		return
	}
	keep := kv.Revision(l.rng.IntN(200))
	if keep >= now {
		keep = now / 2
	}
	command := &kv.Command{Compact: &kv.CompactOp{Revision: now - keep}}
	l.world.Operation(-1, "compact")
	t.Propose(l.person(0), command, func(kv.Result, error) {})
}
