package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
)

// wide is a transaction that compares the values of all keys of fill, so many times, and puts.
func wide(compares int) kv.Command {
	op := kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x"), Value: []byte("v")}}}}
	for range compares {
		op.Compares = append(op.Compares, kv.Compare{
			Key: []byte("p/"), End: []byte("p0"), Target: kv.CompareValue, Result: kv.CompareNotEqual, Value: []byte("no")})
	}
	return txn(op)
}

// keeping is a transaction of so many puts of the first key of fill that keep its value, nested in each other.
func keeping(puts int) kv.Command {
	put := func() kv.Op { return kv.Op{Put: &kv.PutOp{Key: []byte("p/000"), IgnoreValue: true}} }
	op := &kv.TxnOp{Then: []kv.Op{put()}}
	for range puts - 1 {
		op = &kv.TxnOp{Then: []kv.Op{put(), {Txn: op}}}
	}
	return txn(*op)
}

// Ensure that a command which compares, or keeps, more than the bound is rejected by every member, that it changes nothing
// then, and that one exactly at the bound is not.
func TestMachine_Apply_looksTooFar(t *testing.T) {
	const values = 8
	each := int64(kv.WalkKeyBytes + mib)
	for name, c := range map[string]struct {
		command func(n int) kv.Command
		each    int64
	}{
		"comparisons": {wide, values * each},
		"kept values": {keeping, each},
	} {
		most := int(apply.MaxLooks / c.each)
		b := newBench(t)
		b.fill(values)
		before := b.m.Store().Revision()
		if result := b.do(c.command(most)); result.Err != nil || result.Revision != before+1 {
			t.Errorf("%s, as many as may be: %v", name, result.Err)
		}
		result := b.do(c.command(most + 1))
		if !errors.Is(result.Err, kv.ErrLooksTooFar) || result.Revision != before+1 {
			t.Errorf("%s, one too many: %v at revision %d", name, result.Err, result.Revision)
		}
		b.open() // without a cache
		if result := b.do(c.command(most + 1)); !errors.Is(result.Err, kv.ErrLooksTooFar) {
			t.Errorf("%s, one too many, started again: %v", name, result.Err)
		}
	}
}

// Ensure that a range which passes over many keys does not delay later entries: its answer is read afterwards.
func TestMachine_ApplyFor_walksLittle(t *testing.T) {
	b := newBench(t)
	const keys = 2000
	for i := range keys {
		b.do(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "k%06d", i), Value: []byte("v")}})
	}
	for name, op := range map[string]kv.RangeOp{
		"filtered": {MinMod: 1 << 60}, "sorted": {Target: kv.SortByMod, Order: kv.SortDescend, Limit: 1, KeysOnly: true},
	} {
		op.Key, op.End = []byte("k"), []byte("l")
		cmd := txn(kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x")}}, {Range: &op}}})
		results, err := b.m.ApplyFor(append(b.log[:0:0], *b.entry(cmd)), answerAll)
		if err != nil || results[0].Err != nil || results[0].Left == nil {
			t.Fatalf("%s: %v, %v, left %v", name, err, results[0].Err, results[0].Left)
		}
		if err := b.m.Recall(&cmd, &results[0], unlimited{}); err != nil || results[0].Txn.Responses[1].Range.Count != keys {
			t.Errorf("%s, recalled: %v, %+v", name, err, results[0].Txn)
		}
		op.End = []byte("k000100")
		few := txn(kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x")}}, {Range: &op}}})
		results, err = b.m.ApplyFor(append(b.log[:0:0], *b.entry(few)), answerAll)
		if err != nil || results[0].Left != nil || results[0].Txn.Responses[1].Range.Count != 100 {
			t.Errorf("%s, of few keys: %v, %+v", name, err, results[0])
		}
	}
}

// Ensure that Apply does not read a range of one large value whose answer is too large for it.
func TestMachine_ApplyFor_readsNoLargeValue(t *testing.T) {
	b := newBench(t)
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), 8*mib)}})
	cmd := txn(kv.TxnOp{Then: []kv.Op{{Put: &kv.PutOp{Key: []byte("x")}}, {Range: &kv.RangeOp{Key: []byte("k")}}}})
	entries := append(b.log[:0:0], *b.entry(cmd))
	n := allocated(func() {
		results, err := b.m.ApplyFor(entries, answerAll)
		if err != nil || results[0].Left == nil {
			t.Errorf("got %v, %+v", err, results)
		}
	})
	if n > mib {
		t.Errorf("it takes %d bytes", n)
	}
}

// Ensure that keys count beside their bytes, so that the parts of a lease with short keys are short.
func TestMachine_Apply_shortParts(t *testing.T) {
	const keys = 3 * apply.EndBytes / (apply.EndKeyBytes + 4)
	b := newBench(t)
	b.do(kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: large, TTLSeconds: 60}})
	for i := range keys {
		b.do(kv.Command{Put: &kv.PutOp{Key: fmt.Appendf(nil, "%04d", i), Lease: large}})
	}
	parts := 0
	for before := keys; b.m.Leases().Exists(large) && parts < 10; parts++ {
		b.do(revokeLarge())
		left := len(b.leaseKeys(large))
		if most := apply.EndBytes/(apply.EndKeyBytes+4) + 1; before-left > most || left == before {
			t.Errorf("a part deleted %d keys, %d at most", before-left, most)
		}
		before = left
	}
	if parts != 3 && parts != 4 {
		t.Errorf("it ended in %d parts", parts)
	}
}
