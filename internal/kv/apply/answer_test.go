package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

const mib = 1 << 20

// limitedAccount is an account with a limit.
type limitedAccount struct {
	left     int
	released bool
}

func (r *limitedAccount) Take(n int) error {
	if r.left -= n; r.left < 0 {
		return kv.ErrAnswerTooLarge
	}
	return nil
}

func (r *limitedAccount) Walk(int) error { return nil }

func (r *limitedAccount) Release() { r.released = true }

// pill is a transaction of one put and many ranges over all keys of a prefix.
func pill(ranges int) kv.Command {
	op := kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x"), Value: []byte("v")}}}}
	for range ranges {
		op.Then = append(op.Then, kv.Op{Range: &kv.RangeOp{Key: []byte("p/"), End: []byte("p0")}})
	}
	return txn(op)
}

// fill puts values of a MiB.
func (b *bench) fill(n int) {
	value := make([]byte, mib)
	rand.New(rand.NewSource(1)).Read(value)
	for i := range n {
		b.do(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "p/%03d", i), Value: value}})
	}
}

// allocated returns the bytes that f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// Ensure that a transaction that reads half a GiB costs almost nothing where no client waits for its answer, a bounded amount
// where one does, and nothing in the store that grows with the answer.
func TestMachine_ApplyFor_many_ranges(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: the race detector finds nothing here")
	}
	b := newBenchOn(t, true)
	id := openSession(b, 1, 1)
	b.fill(4)
	e := *b.entry(pill(127))
	e.Proposal = id(2)
	before := b.m.SizeBytes()
	var results []kv.Result
	if n := allocated(func() { results, _ = b.m.Apply([]consensus.Entry{e}) }); n > 8*mib {
		t.Errorf("applied for nobody, it takes %d MiB", n/mib)
	}
	if grown := b.m.SizeBytes() - before; results[0].Left == nil || grown > 256 {
		t.Errorf("the store grew by %d, left of the result: %+v", grown, results[0].Left)
	}
	again := *b.entry(pill(127))
	again.Proposal = id(3)
	account := &limitedAccount{left: 1 << 30}
	n := allocated(func() {
		results, _ = b.m.ApplyFor([]consensus.Entry{again}, func(consensus.ProposalID) kv.Account { return account })
	})
	if n > 24*mib || results[0].Left == nil || !account.released {
		t.Errorf("applied for somebody, it takes %d MiB, left %+v, released %v", n/mib, results[0].Left, account.released)
	}
	cmd, left := pill(127), results[0]
	if n := allocated(func() {
		if err := b.m.Recall(&cmd, &left, &limitedAccount{left: 16 * mib}); !errors.Is(err, kv.ErrAnswerTooLarge) || left.Left == nil {
			t.Errorf("more than there is account for: %v %+v", err, left)
		}
	}); n > 64*mib {
		t.Errorf("an answer of 16 MiB takes %d MiB", n/mib)
	}
	if err := b.m.Recall(&cmd, &left, unlimited{}); err != nil || len(left.Txn.Responses) != 128 ||
		len(left.Txn.Responses[127].Range.KVs) != 4 || left.Txn.Responses[127].Revision != left.Revision {
		t.Errorf("with account for all: %v", err)
	}
}

// Ensure that a log with such entries, written before there was a bound, can be applied again.
func TestMachine_Apply_many_ranges_repeated(t *testing.T) {
	b := newBenchOn(t, true)
	id := openSession(b, 1, 1)
	b.fill(4)
	var log []consensus.Entry
	for i := range 50 {
		e := *b.entry(pill(127))
		e.Proposal = id(uint64(i) + 2)
		log = append(log, e)
	}
	if n := allocated(func() {
		for range 2 { // the second time each has its result
			if _, err := b.m.Apply(log); err != nil {
				t.Fatal(err)
			}
			for i := range log {
				log[i].Index += consensus.Index(len(log))
			}
		}
	}); n > 16*mib {
		t.Errorf("50 of them, twice, take %d MiB", n/mib)
	}
}

// Ensure that the result table has the same bytes whichever member answers, and however small the accounts are.
func TestMachine_ApplyFor_rows_do_not_depend_on_who_answers(t *testing.T) {
	tables := [3]*bench{newBench(t), newBench(t), newBench(t)}
	g := &generator{rng: rand.New(rand.NewSource(5)), revision: 1, sequence: map[consensus.SessionID]uint64{}}
	answering := [3]func(consensus.ProposalID) kv.Account{
		nil, answerAll, func(consensus.ProposalID) kv.Account { return &limitedAccount{left: g.rng.Intn(400)} },
	}
	// One is watched, so that it keeps the values that it deletes.
	stream := tables[2].m.Hub().Open()
	defer stream.Close()
	stream.Create(watchAll())
	if _, err := stream.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log []consensus.Entry
	for range 3000 {
		e, _ := g.entry(log)
		log = append(log, e)
		for i, b := range tables {
			if _, err := b.m.ApplyFor([]consensus.Entry{e}, answering[i]); err != nil {
				t.Fatal(err)
			}
		}
		g.revision = tables[0].m.Store().Revision()
	}
	want := rows(t, tables[0].eng)
	for _, b := range tables[1:] {
		if got := rows(t, b.eng); !slices.EqualFunc(got, want, bytes.Equal) || len(got) < 100 {
			t.Errorf("%d rows and %d that differ", len(want), len(got))
		}
		if b.m.Chain() != tables[0].m.Chain() {
			t.Errorf("the chains are %+v and %+v", b.m.Chain(), tables[0].m.Chain())
		}
		if b.m.ResultBytes() != tables[0].m.ResultBytes() {
			t.Errorf("%d and %d bytes are counted", b.m.ResultBytes(), tables[0].m.ResultBytes())
		}
	}
	sum := int64(0)
	for _, row := range want {
		sum += int64(len(row))
	}
	if tables[0].open(); tables[0].m.ResultBytes() != sum {
		t.Errorf("%d bytes are counted after a start, there are %d", tables[0].m.ResultBytes(), sum)
	}
}

// rows is the table of results.
func rows(t *testing.T, eng engine.Engine) (all [][]byte) {
	t.Helper()
	it, err := eng.NewIter([]byte("q"), []byte("r"))
	if err != nil {
		t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		all = append(all, append(bytes.Clone(it.Key()), it.Value()...))
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// Ensure that rows stay small, and that previous pairs are in the store once.
func TestMachine_Apply_rows_are_small(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much memory: the race detector, which runs with -short, finds nothing")
	}
	b := newBench(t)
	id := openSession(b, 1, 1)
	b.fill(1)
	many := kv.TxnOp{}
	for i := range 2000 {
		many.Then = append(many.Then, kv.Op{Put: &kv.PutOp{Key: fmt.Append(nil, i)}})
	}
	for i, cmd := range []kv.Command{
		{Put: &kv.PutOp{Key: []byte("p/000"), Value: []byte("2"), PrevKV: true}},
		{Delete: &kv.DeleteOp{Key: []byte("p/"), End: []byte("p0"), PrevKV: true}},
		txn(many),
	} {
		before := b.m.ResultBytes()
		res := b.propose(id(uint64(i)+2), cmd)
		if grown := b.m.ResultBytes() - before; grown > 600 || grown == 0 {
			t.Errorf("the row of %+v takes %d bytes", cmd, grown)
		}
		b.want("a second entry", b.propose(id(uint64(i)+2), cmd), res)
	}
	b.do(retire(1, 1))
	if b.m.ResultBytes() != 0 || b.m.SessionBytes(id(1).Session) != 0 {
		t.Errorf("%d bytes are left of a retired session", b.m.ResultBytes())
	}
}

// Ensure that Recall makes up no compacted result, and gives no command the result of another one.
func TestMachine_Recall_gone(t *testing.T) {
	b := newBench(t)
	id := openSession(b, 1, 1)
	b.do(put("a", "1"))
	cmd := kv.Command{Put: &kv.PutOp{Key: []byte("a"), Value: []byte("2"), PrevKV: true}}
	b.propose(id(2), cmd)
	recall := func(cmd kv.Command) error {
		res, found, err := b.m.Result(id(2))
		if !found || err != nil || res.Left == nil {
			t.Fatalf("%+v %v %v", res, found, err)
		}
		return b.m.Recall(&cmd, &res, unlimited{})
	}
	if err := recall(cmd); err != nil {
		t.Error(err)
	}
	if err := recall(del("a", "")); !errors.Is(err, kv.ErrResultGone) {
		t.Errorf("another command: %v", err)
	}
	b.do(kv.Command{Compact: &kv.CompactOp{Revision: 3}})
	if err := recall(cmd); !errors.Is(err, kv.ErrResultGone) {
		t.Errorf("after the compaction: %v", err)
	}
}

// Ensure that the values of deleted keys are not kept for watchers beyond a bound: watchers read them from the store, and miss
// none.
func TestMachine_Apply_large_events(t *testing.T) {
	b := newBenchOn(t, true)
	stream := b.m.Hub().Open()
	defer stream.Close()
	b.fill(40)
	stream.Create(watchAll())
	if _, err := stream.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.do(put("small", "1"))
	if stats := b.m.Hub().Stats(); stats.Behind != 0 {
		t.Errorf("a small event is read from the store: %+v", stats)
	}
	if res := b.do(del("p/", "p0")); res.Delete.Deleted != 40 {
		t.Errorf("%+v", res.Delete)
	}
	if stats := b.m.Hub().Stats(); stats.Behind != 1 {
		t.Errorf("40 MiB are kept for a watcher: %+v", stats)
	}
	if keys := deleted(t, stream); len(keys) != 40 {
		t.Errorf("%d deletions are seen", len(keys))
	}
}
