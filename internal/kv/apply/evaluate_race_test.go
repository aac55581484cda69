package apply_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
)

// hooked is an engine that calls back at given moments, so that a test can act in the middle of operations.
type hooked struct {
	engine.Engine
	onCommit, afterCommit, onRead func()
}

type hookedBatch struct {
	engine.Batch
	engine *hooked
}

func call(hook *func()) {
	if f := *hook; f != nil {
		*hook = nil
		f()
	}
}

func (h *hooked) NewBatch() engine.Batch { return &hookedBatch{Batch: h.Engine.NewBatch(), engine: h} }

func (h *hooked) NewIter(lower, upper []byte) (engine.Iterator, error) {
	call(&h.onRead)
	return h.Engine.NewIter(lower, upper)
}

func (b *hookedBatch) Commit() error {
	call(&b.engine.onCommit)
	err := b.Batch.Commit()
	call(&b.engine.afterCommit)
	return err
}

// hookBench is a bench whose machine has no cache and an engine with hooks.
func hookBench(t *testing.T) (*bench, *hooked) {
	b := newBench(t)
	h := &hooked{Engine: b.eng}
	m, err := apply.Open(h, apply.Options{Store: mvcc.Options{CacheBytes: -1}})
	if err != nil {
		t.Fatal(err)
	}
	b.m = m
	return b, h
}

// Ensure that no effect of an entry, or of a later one, passes for the state before the entry: leases and alarms are visible
// during Apply, before the revision is, and the revision before the applied position.
func TestMachine_Evaluate_beside_its_own_entry(t *testing.T) {
	prev := func(key string, lease kv.LeaseID) kv.Op {
		return kv.Op{Put: &kv.PutOp{Key: []byte(key), Lease: lease, PrevKV: true}}
	}
	early, late, between := "before the commit", "after the commit", "between two reads"
	for _, c := range []struct {
		name    string
		cmd     kv.Command
		next    kv.Command
		moments []string
	}{
		{"a lease that is granted behind it", txn(kv.TxnOp{Then: []kv.Op{prev("y", 0), prev("a", 5)}}), grant(5),
			[]string{early, late, between}},
		{"an alarm that is disarmed behind it", put("a", "1"), kv.Command{Alarm: &kv.AlarmOp{}}, []string{early, late}},
		{"a key that is written behind it", del("x", ""), put("x", "1"), []string{early, late, between}},
		{"a change of its own", kv.Command{Put: prev("z", 0).Put}, put("z", "2"), []string{early, late, between}},
	} {
		for _, moment := range c.moments {
			t.Run(c.name+", "+moment, func(t *testing.T) {
				b, h := hookBench(t)
				id := openSession(b, 9, 1)
				b.do(put("z", "1"))
				if c.next.Alarm != nil {
					b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Kind: kv.AlarmCorrupt}})
				}
				e := b.exact(id(2), 9, c.cmd)
				batch := []consensus.Entry{e, *b.entry(c.next)}
				var result, guess kv.Result
				calls, ok := 0, false
				evaluate := func() {
					calls++
					guess, ok = b.m.Evaluate(&e)
				}
				apply := func() {
					calls++
					result = b.apply(batch...)[0]
				}
				switch moment {
				case early:
					h.onCommit = evaluate
					apply()
				case late:
					h.afterCommit = evaluate
					apply()
				default:
					h.onRead = apply
					evaluate()
				}
				if calls != 2 {
					t.Error("the hook was not called")
				}
				if ok && !bytes.Equal(guess.Append(nil), result.Append(nil)) {
					t.Errorf("Evaluate %+v, Apply %+v", guess, result)
				}
			})
		}
	}
}

// Ensure that Evaluate, for an entry which a new leader put elsewhere in the log, returns its result there: no effect of the
// entries behind it there passes for the state that it met. The old leader may still be asked, under the old index.
func TestMachine_Evaluate_beside_the_entry_recovered_elsewhere(t *testing.T) {
	b, h := hookBench(t)
	id := openSession(b, 9, 1)
	b.do(put("z", "1"))
	ops := kv.TxnOp{Then: []kv.Op{
		{Put: &kv.PutOp{Key: []byte("y"), PrevKV: true}}, {Put: &kv.PutOp{Key: []byte("a"), Lease: 5}},
	}}
	recovered := b.exact(id(2), 9, txn(ops))
	old := recovered
	old.Index += 10
	h.onRead = func() {
		if results := b.apply(recovered, *b.entry(grant(5))); results[0].Err == nil {
			t.Error("there was no such lease")
		}
	}
	if guess, ok := b.m.Evaluate(&old); ok || h.onRead != nil {
		t.Errorf("told %+v of a transaction that was rejected", guess)
	}
}

// Ensure that a compaction which overtakes the revision that is read makes the result uncertain, and is no error.
func TestMachine_Evaluate_overtaken_by_compaction(t *testing.T) {
	b, h := hookBench(t)
	id := openSession(b, 9, 1)
	b.do(put("a", "1"))
	e := b.exact(id(2), 9, kv.Command{Put: &kv.PutOp{Key: []byte("a"), PrevKV: true}})
	h.onRead = func() {
		b.apply(e, *b.entry(put("b", "1")), *b.entry(kv.Command{Compact: &kv.CompactOp{Revision: 10}}))
	}
	if guess, ok := b.m.Evaluate(&e); ok || h.onRead != nil {
		t.Errorf("told %+v of what was written over and compacted", guess)
	}

	e = b.exact(id(3), 20, kv.Command{Put: &kv.PutOp{Key: []byte("a"), PrevKV: true}})
	e.Index += 2 // the two that come in between, against the rules
	h.onRead = func() {
		b.index--
		b.apply(*b.entry(put("b", "2")), *b.entry(kv.Command{Compact: &kv.CompactOp{Revision: 11}}))
	}
	if guess, ok := b.m.Evaluate(&e); ok || h.onRead != nil {
		t.Errorf("a revision that is compacted: %+v %v", guess, ok)
	}
}

// racer is a log that one goroutine applies while others evaluate its entries.
type racer struct {
	b       *bench
	prints  []consensus.Footprint
	guesses []atomic.Pointer[kv.Result]
	from    consensus.Index // of the first entry in the race
}

// TestMachine_Evaluate_race evaluates entries while they, and others that conflict with them, are being applied.
func TestMachine_Evaluate_race(t *testing.T) {
	const seed, entries, workers = 5, 4000, 2
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	r := newRacer(t, rng, entries)
	log := r.b.log[r.from-1:]
	var stop atomic.Bool
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { r.guess(rand.New(rand.NewSource(int64(worker))), log, &stop) })
	}
	results := make([]kv.Result, 0, entries)
	for rest := log; len(rest) > 0; {
		n := min(1+rng.Intn(6), len(rest))
		for range 8 { // the others run beside Apply; this ensures some on a machine with one core
			r.try(rng, log)
		}
		got, err := r.b.m.ApplyFor(rest[:n], answerAll)
		if err != nil {
			t.Error(err)
			break
		}
		results, rest = append(results, got...), rest[n:]
	}
	stop.Store(true)
	group.Wait()
	for i := range results {
		guess := r.guesses[i].Load()
		if guess != nil && !bytes.Equal(guess.Append(nil), results[i].Append(nil)) {
			t.Errorf("seed %d, entry %+v: Evaluate %+v, Apply %+v", seed, log[i], guess, results[i])
		}
	}
	told := 0
	for i := range r.guesses {
		if r.guesses[i].Load() != nil {
			told++
		}
	}
	if told < entries/10 {
		t.Errorf("only %d entries were evaluated", told)
	}
	t.Logf("%d of %d entries were evaluated", told, entries)
}

func newRacer(t *testing.T, rng *rand.Rand, entries int) *racer {
	b := newBench(t)
	id := openSession(b, 9, 1)
	r := &racer{b: b, from: b.index + 1, guesses: make([]atomic.Pointer[kv.Result], entries)}
	g := &generator{rng: rng, revision: 1, sequence: map[consensus.SessionID]uint64{}}
	bound := uint64(1)
	for i := range entries {
		cmd := g.command()
		if cmd.SessionRetire != nil || cmd.Alarm != nil && cmd.Alarm.Activate || rng.Intn(2) == 0 {
			cmd = kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%d", rng.Intn(30)), PrevKV: true}}
		}
		f := kv.FootprintOf(&cmd)
		r.prints = append(r.prints, f)
		bound++
		if e := b.entry(cmd); !f.Barrier && rng.Intn(4) > 0 {
			bound += uint64(rng.Intn(2))
			e.ExactRevision, e.Proposal = bound, id(uint64(i)+2)
		}
		g.revision = kv.Revision(bound)
	}
	return r
}

func (r *racer) guess(rng *rand.Rand, log []consensus.Entry, stop *atomic.Bool) {
	for !stop.Load() {
		r.try(rng, log)
	}
}

// try evaluates an entry a little ahead of the applied ones, if the rules allow it.
func (r *racer) try(rng *rand.Rand, log []consensus.Entry) {
	first := int(r.b.m.Applied().Index + 1 - r.from)
	at := first + rng.Intn(5)
	if at >= len(log) || log[at].ExactRevision == 0 {
		return
	}
	for between := first; between < at; between++ {
		if r.prints[between].Conflicts(&r.prints[at]) {
			return
		}
	}
	if guess, ok := r.b.m.Evaluate(&log[at]); ok {
		r.guesses[at].Store(&guess)
	}
}
