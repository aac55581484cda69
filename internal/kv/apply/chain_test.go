package apply_test

import (
	"bytes"
	"errors"
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

// Ensure that the chains of two members differ from the next entry on if a row of a table of level 2 differs between them, or is
// missing at one: the last byte of each is changed, and then the row is deleted.
func TestMachine_Chain_coversTables(t *testing.T) {
	fill := func() *bench {
		b := newLimitedBench(t)
		for i := range 5 {
			b.do(put(fmt.Sprint("a/", i), "1"))
		}
		b.do(quota("counted", "b/", 1000, 1000))
		b.count("counted")
		b.do(quota("counting", "a/", 1000, 1000))
		b.do(kv.Command{Limit: &kv.LimitOp{Count: "counting", From: []byte("a/")}})
		b.do(moment(5, 3))
		b.do(moment(6, 4))
		b.do(auditPolicy(0, "x"))
		b.do(auditHead(1, 7, 1))
		b.do(auditHead(1, 7, 2))
		b.do(kv.Command{Backup: &kv.BackupOp{Kind: kv.BackupSet, Policy: kv.BackupPolicy{On: true, Place: "file:///b", BaseSeconds: 3600,
			SealMillis: 1000}}})
		b.open()
		return b
	}
	next := func(b *bench) apply.ChainMark {
		b.do(put("z", "1"))
		return b.m.Chain()
	}
	same, tables := next(fill()), 0
	if again := next(fill()); again != same {
		t.Fatalf("%+v and %+v", same, again)
	}
	for _, table := range []string{"sm", "sy", "sz", "sg", "sd", "sb"} {
		rows := fill().rowsOf(table)
		if len(rows) == 0 {
			t.Errorf("table %s has no rows", table)
		}
		for _, row := range rows {
			changed := bytes.Clone(row.Value)
			if changed[len(changed)-1] ^= 1; table == "sy" {
				changed = bytes.Clone(row.Value)
				changed[2] += 2 // a key more
			}
			if table == "sb" {
				changed = bytes.Clone(row.Value)
				changed[1]++ // the generation
			}
			b := fill()
			b.setRow(row.Key, changed)
			if mark := next(b); mark.Sum == same.Sum || mark.Index != same.Index {
				t.Errorf("with %q changed to %x: %+v, and else %+v", row.Key, changed, mark, same)
			}
			if tables++; table == "sm" || table == "sy" { // the store is refused: one has the other
				continue
			}
			b = fill()
			b.setRow(row.Key, nil)
			if mark := next(b); mark.Sum == same.Sum || mark.Index != same.Index {
				t.Errorf("without %q: %+v, and else %+v", row.Key, mark, same)
			}
		}
	}
	if tables != 10 {
		t.Errorf("%d rows were changed", tables)
	}
}

// Ensure that a store with the rule of a quota and no use of it is refused, as is one with a use and no rule.
func TestMachine_open_withoutUse(t *testing.T) {
	for _, missing := range []string{"sy", "sm"} {
		b := newLimitedBench(t)
		b.do(quota("q", "a/", 1000, 1000))
		row := b.rowsOf(missing)[0]
		batch := b.eng.NewBatch()
		batch.DeleteRange(row.Key, append(bytes.Clone(row.Key), 0))
		if err := batch.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := batch.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := apply.Open(b.eng, apply.Options{}); !errors.Is(err, apply.ErrCorruptRow) {
			t.Errorf("without %q: %v", row.Key, err)
		}
	}
}

// Ensure that what a table of level 2 adds to the chain is the same whether its rows were added one by one, or loaded: also after
// moments and heads were thinned out, a compaction has deleted moments, and rules were changed and deleted.
func TestMachine_Chain_ofLoadedTables(t *testing.T) {
	one, other := newLimitedBench(t), newLimitedBench(t)
	steps := 0
	do := func(command kv.Command) {
		t.Helper()
		steps++
		one.do(command)
		other.do(command)
		if steps%1000 == 0 {
			other.openLimited()
		}
		if a, b := one.m.Chain(), other.m.Chain(); a.Sum != b.Sum {
			t.Fatalf("step %d: %+v, and %+v for a member that was started anew", steps, a, b)
		}
	}
	for i := range apply.MostMoments + 3 {
		do(put("a/1", ""))
		do(moment(int64(i), one.m.Store().Revision()))
	}
	for i := range uint64(70) {
		do(auditHead(1, 7+i%2, 1+i))
	}
	for i := range 3 {
		do(auditPolicy(uint64(i), fmt.Sprint("policy ", i)))
		do(quota("q", fmt.Sprint("a/", i), 100, int64(i)))
		do(quota("p", "a/", 100, -1))
	}
	do(kv.Command{Limit: &kv.LimitOp{Count: "p", From: []byte("a/")}})
	do(deleteLimit("q"))
	do(kv.Command{Compact: &kv.CompactOp{Revision: one.m.Store().Revision() / 2}})
	other.openLimited()
	do(put("a/1", ""))
	if len(one.m.Moments()) >= apply.MostMoments || len(one.m.Audit().Heads) >= 70 {
		t.Errorf("%d moments, %d heads: nothing was thinned out", len(one.m.Moments()), len(one.m.Audit().Heads))
	}
}

// Ensure that the chain differs if a member notes another author with a change, and that below level 2, where none is noted, it
// does not.
func TestMachine_Chain_coversAuthors(t *testing.T) {
	for name, raised := range map[string]bool{"level 1": false, "level 2": true} {
		var sums []uint64
		for _, faults := range []apply.Faults{{}, {FirstAuthor: true}} {
			b := newSecondBench(t, 1)
			if raised {
				b.raiseToSecond()
			}
			b.openWithOptions(apply.Options{Faults: faults})
			var entries []consensus.Entry
			for _, user := range []string{"ann", "bob"} {
				c := put("k", user)
				c.By = auth.Credentials{User: user}
				entries = append(entries, *b.entry(c))
			}
			b.apply(entries...)
			sums = append(sums, b.m.Chain().Sum)
		}
		if differ := sums[0] != sums[1]; differ != raised {
			t.Errorf("%s: the chains differ: %t", name, differ)
		}
	}
}

// rowsOf returns the rows whose keys begin with the letters of a table.
func (b *bench) rowsOf(table string) (rows []auth.Row) {
	b.t.Helper()
	it, err := b.eng.NewIter([]byte(table), append([]byte(table), 0xff))
	if err != nil {
		b.t.Fatal(err)
	}
	for valid := it.First(); valid; valid = it.Next() {
		rows = append(rows, auth.Row{Key: bytes.Clone(it.Key()), Value: bytes.Clone(it.Value())})
	}
	if err := it.Close(); err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// setRow replaces a row, or deletes it if value is nil, behind the back of the machine, which is then opened.
func (b *bench) setRow(key, value []byte) {
	b.t.Helper()
	batch := b.eng.NewBatch()
	defer batch.Close()
	if value == nil {
		batch.DeleteRange(key, append(bytes.Clone(key), 0))
	} else {
		batch.Set(key, value)
	}
	if err := batch.Commit(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
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
