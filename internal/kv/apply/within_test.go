package apply_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
)

func nested(cmd kv.Command) kv.Op {
	if cmd.Txn != nil {
		return kv.Op{Txn: cmd.Txn}
	}
	return kv.Op{Txn: &kv.TxnOp{Then: []kv.Op{{Put: cmd.Put, Delete: cmd.Delete}}}}
}

func seen(t *testing.T, b *bench, from kv.Revision) (words []string) {
	t.Helper()
	o := &observer{t: t, stream: b.m.Hub().Open()}
	defer o.stream.Close()
	o.stream.Create(watch.Request{Key: []byte{0}, End: []byte{0}, Start: from, PrevKV: true})
	o.poll()
	return tellEvents(o.events)
}

func tellEvents(events []kv.Event) (words []string) {
	for _, e := range events {
		word := fmt.Sprintf("%s=%s@%d", e.KV.Key, e.KV.Value, e.KV.ModRevision)
		if e.Kind == kv.EventDelete {
			word = fmt.Sprintf("-%s@%d", e.KV.Key, e.KV.ModRevision)
		}
		if e.Prev != nil {
			word += fmt.Sprintf("(%s@%d)", e.Prev.Value, e.Prev.ModRevision)
		}
		words = append(words, word)
	}
	return words
}

// A watch delivers previous pairs from before the transaction, in step and from history. A deletion returns the pairs from
// before that operation.
func TestMachine_Apply_previousWithinTxn(t *testing.T) {
	b := newBench(t)
	o := &observer{t: t, stream: b.m.Hub().Open()}
	defer o.stream.Close()
	o.stream.Create(watch.Request{Key: []byte{0}, End: []byte{0}, PrevKV: true})
	all := kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte{0}, PrevKV: true}}
	b.do(put("a", "before"))
	got := b.do(txn(kv.TxnOp{Then: []kv.Op{{Put: put("a", "inside").Put}, {Put: put("b", "new").Put}, nested(all)}}))
	were := got.Txn.Responses[2].Txn.Responses[0].Delete.Prevs
	if len(were) != 2 || string(were[0].Value) != "inside" || string(were[1].Value) != "new" {
		t.Errorf("the deletion returns %+v, want what the transaction wrote", were)
	}
	b.do(put("a", "again"))
	b.do(txn(kv.TxnOp{Then: []kv.Op{nested(all), {Put: put("a", "inside").Put}, nested(all)}}))
	o.poll()
	want := []string{
		"a=before@2", "a=inside@3(before@2)", "b=new@3", "-a@3(before@2)", "-b@3",
		"a=again@4", "-a@5(again@4)", "a=inside@5", "-a@5(again@4)",
	}
	if live := tellEvents(o.events); !slices.Equal(live, want) {
		t.Errorf("in step:\n%q, want\n%q", live, want)
	}
	if past := seen(t, b, 1); !slices.Equal(past, want) {
		t.Errorf("from history:\n%q, want\n%q", past, want)
	}
}

// A put that keeps value or lease of a key which its transaction has deleted keeps nothing, on all members alike. Proposers let
// a nested deletion of all keys pass; etcd 3.7 panics.
func TestMachine_Apply_keepsWhatTxnDeleted(t *testing.T) {
	for _, lsm := range []bool{false, true} {
		b, other := newBenchOn(t, lsm), newBenchOn(t, !lsm)
		for _, b := range []*bench{b, other} {
			b.do(grant(4))
			b.do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v"), Lease: 4}})
			keep := &kv.PutOp{Key: []byte("k"), IgnoreValue: true, IgnoreLease: true, PrevKV: true}
			got := b.do(txn(kv.TxnOp{Then: []kv.Op{nested(del("\x00", "\x00")), {Put: keep}}}))
			if got.Err != nil || got.Txn.Responses[1].Put.Prev != nil {
				t.Fatalf("got %+v, want a put of a new key", got)
			}
			k := b.get("k")
			if k == nil || len(k.Value) != 0 || k.Lease != 0 || k.Version != 1 || k.CreateRevision != 3 || k.ModRevision != 3 {
				t.Errorf("the key is %+v, want a new one without value and lease", k)
			}
			if keys := b.leaseKeys(4); len(keys) != 0 {
				t.Errorf("%v hang on the lease, want nothing", keys)
			}
			want := []string{"k=v@2", "-k@3(v@2)", "k=@3"}
			if got := seen(t, b, 1); !slices.Equal(got, want) {
				t.Errorf("a watch shows %q, want %q", got, want)
			}
		}
		one, _, _, err := b.m.Store().HashKV(0)
		two, _, _, err2 := other.m.Store().HashKV(0)
		if err != nil || err2 != nil || one != two {
			t.Errorf("hashes of two members: %v and %v, %v %v", one, two, err, err2)
		}
		// If the key does not exist before the transaction, the transaction is rejected as a whole.
		b.do(del("k", ""))
		gone := b.do(txn(kv.TxnOp{Then: []kv.Op{{Put: put("x", "y").Put}, {Put: &kv.PutOp{Key: []byte("k"), IgnoreValue: true}}}}))
		if gone.Err != kv.ErrKeyNotFound || b.get("x") != nil {
			t.Errorf("got %+v, want %v and no change", gone, kv.ErrKeyNotFound)
		}
	}
}
