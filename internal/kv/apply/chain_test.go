package apply_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/storage/engine"
)

// writeLog fills a bench's log with commands of many kinds.
func writeLog(b *bench, entries int, rng *rand.Rand) {
	for range entries {
		key := fmt.Sprint("k", rng.Intn(9))
		switch rng.Intn(6) {
		case 0:
			b.entry(del("k", "l"))
		case 1:
			b.entry(grant(kv.LeaseID(1 + rng.Intn(5))))
		case 2:
			b.entry(kv.Command{Compact: &kv.CompactOp{Revision: kv.Revision(rng.Intn(50))}})
		default:
			b.entry(put(key, fmt.Sprint(rng.Intn(1000))))
		}
	}
}

// Members that apply the same log have the same chain at each index, however they divide it into batches, restart, compact
// history, or begin with a snapshot.
func TestMachine_Chain_isTheSameOnAllMembers(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewSource(seed))
	one := newBench(t)
	writeLog(one, 6000, rng)
	for i := range one.log {
		one.apply(one.log[i])
	}
	other := newBench(t)
	for at := 0; at < len(one.log); {
		n := min(1+rng.Intn(100), len(one.log)-at)
		other.apply(one.log[at : at+n]...)
		at += n
		if rng.Intn(10) == 0 {
			other.open()
		}
		if _, err := other.m.Store().CompactStep(1 + rng.Intn(20)); err != nil {
			t.Fatal(err)
		}
		got, ok := other.m.ChainAt(consensus.Index(at))
		want, known := one.m.ChainAt(consensus.Index(at))
		if !ok || got.Index != consensus.Index(at) {
			t.Fatalf("index %d: %+v %v", at, got, ok)
		}
		if known && want.Index == got.Index && got != want {
			t.Fatalf("index %d: chain %+v in batches, %+v one by one", at, got, want)
		}
	}
	if got, want := other.m.Chain(), one.m.Chain(); got != want || got.Index != 6000 {
		t.Fatalf("chain %+v in batches, %+v one by one", got, want)
	}
	for index, want := range map[consensus.Index]consensus.Index{6000: 6000, 1905: 1905, 1904: 1024, 1024: 1024, 9999: 6000} {
		if mark, ok := one.m.ChainAt(index); !ok || mark.Index != want {
			t.Errorf("asked for index %d: %+v %v, want index %d", index, mark, ok, want)
		}
	}
	if mark, ok := one.m.ChainAt(1023); ok && mark.Index != 0 {
		t.Errorf("index 1023 is forgotten, yet %+v", mark)
	}
	other.open()
	if mark, ok := other.m.ChainAt(5999); ok {
		t.Errorf("from before the machine was opened: %+v", mark)
	}
}

// An entry that differs, or that finds different data, changes the chain from its index on.
func TestMachine_Chain_differs(t *testing.T) {
	for name, c := range map[string]struct {
		same  bool
		apart func(b *bench) // makes one member differ from the other
		entry func(b *bench)
	}{
		"nothing differs":        {true, func(*bench) {}, func(b *bench) { b.do(put("a", "2")) }},
		"another payload":        {false, func(*bench) {}, nil},
		"the old value of":       {false, func(b *bench) { corrupt(b, "a") }, func(b *bench) { b.do(put("a", "2")) }},
		"the old value, deleted": {false, func(b *bench) { corrupt(b, "a") }, func(b *bench) { b.do(del("a", "")) }},
	} {
		t.Run(name, func(t *testing.T) {
			var sums []apply.ChainMark
			for i := range 2 {
				b := newBenchOn(t, true)
				b.do(put("a", "1"))
				b.do(put("b", "1"))
				if i == 1 {
					c.apart(b)
				}
				if c.entry == nil {
					b.do(put("a", fmt.Sprint(i)))
				} else {
					c.entry(b)
				}
				b.do(put("c", "1"))
				sums = append(sums, b.m.Chain())
			}
			if same := sums[0].Sum == sums[1].Sum; same != c.same || sums[0].Index != sums[1].Index {
				t.Errorf("%+v and %+v", sums[0], sums[1])
			}
		})
	}
}

// corrupt changes a byte of the row that holds a key's value, and reopens the machine without its caches.
func corrupt(b *bench, key string) {
	b.t.Helper()
	found := 0
	it, err := b.eng.NewIter([]byte{0}, []byte{0xff})
	if err != nil {
		b.t.Fatal(err)
	}
	batch := b.eng.NewBatch()
	defer batch.Close()
	for valid := it.First(); valid; valid = it.Next() {
		if k, v := it.Key(), it.Value(); k[0] == engine.VersionedTable && len(v) > 0 && k[1] == key[0] {
			changed := append([]byte(nil), v...)
			changed[len(changed)-1] ^= 1
			batch.Set(append([]byte(nil), k...), changed)
			found++
		}
	}
	if err := it.Close(); err != nil {
		b.t.Fatal(err)
	}
	if err := batch.Commit(); err != nil || found != 1 {
		b.t.Fatal(found, err)
	}
	b.open()
}

func BenchmarkMachine_chain(b *testing.B) {
	for _, size := range []int{0, 256, 4096} {
		bench := newBench(b)
		entry := *bench.entry(put("key", string(make([]byte, size))))
		before := kv.KeyValue{Key: []byte("key"), Value: make([]byte, size), Version: 7}
		b.Run(fmt.Sprint("values of ", size, " bytes"), func(b *testing.B) {
			for b.Loop() {
				apply.AddToChain(bench.m, &entry, &before)
			}
		})
	}
}

// Ensure that a member whose users differ from those of the others has another chain with the next entry, whatever it is:
// HashKV does not cover the rows of users.
func TestMachine_Chain_users(t *testing.T) {
	one, other := newBench(t), newBench(t)
	for _, b := range []*bench{one, other} {
		b.entry(kv.Command{Auth: &auth.Change{Kind: auth.UserAdd, User: "alice", Hash: []byte("h")}})
		b.entry(kv.Command{Auth: &auth.Change{Kind: auth.RoleAdd, Role: "r"}})
		b.entry(put("k", "v"))
		b.apply(b.log...)
	}
	if one.m.Chain() != other.m.Chain() {
		t.Fatal("equal members have another chain")
	}
	other.open()
	if one.m.Chain() != other.m.Chain() || one.m.Users().Sum() != other.m.Users().Sum() {
		t.Fatalf("another sum after a restart: %x, %x", one.m.Users().Sum(), other.m.Users().Sum())
	}
	row, found, err := other.eng.Get(apply.UserRow("alice"))
	if err != nil || !found {
		t.Fatal(err, found)
	}
	batch := other.eng.NewBatch()
	batch.Set(apply.UserRow("alice"), bytes.Replace(row, []byte("h"), []byte("i"), 1)) // another hash of the password
	if err := batch.Commit(); err != nil {
		t.Fatal(err)
	}
	other.open()
	one.entry(put("k", "w"))
	one.apply(one.log[len(one.log)-1])
	other.entry(put("k", "w"))
	other.apply(other.log[len(other.log)-1])
	if one.m.Chain() == other.m.Chain() {
		t.Error("a member whose users differ has the same chain")
	}
}
