package mvcc_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// opener opens an engine of one kind on a file system.
type opener struct {
	name string
	open func(fs env.FS) (engine.Engine, error)
}

var openers = []opener{
	{"pebble", func(fs env.FS) (engine.Engine, error) {
		return engine.Open(engine.Options{FS: fs, Dir: "/store", CacheBytes: 1 << 20, MemTableBytes: 256 << 10})
	}},
	{"mem", func(fs env.FS) (engine.Engine, error) {
		return engine.OpenMem(engine.MemOptions{FS: fs, Dir: "/store"})
	}},
}

func openStore(t *testing.T, o opener, fs env.FS, cacheBytes int) (*mvcc.Store, engine.Engine) {
	t.Helper()
	eng, err := o.open(fs)
	if err != nil {
		t.Fatal(err)
	}
	s, err := mvcc.Open(eng, mvcc.Options{CacheBytes: cacheBytes, Census: census.Options{Keys: 2}})
	if err != nil {
		t.Fatal(err)
	}
	return s, eng
}

// newStore opens a fresh store that is closed with the test.
func newStore(t *testing.T, o opener) *mvcc.Store {
	t.Helper()
	s, eng := openStore(t, o, filestest.NewMem(), 0)
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Every answer of the store equals that of a naive model, over random commands, compactions, flushes and power losses, after
// which the store is as it was at some commit not before the last flush.
func TestStore_againstModel(t *testing.T) {
	seeds, rounds := uint64(3), 250
	if testing.Short() {
		seeds, rounds = 1, 100
	}
	for _, o := range openers {
		for seed := range seeds {
			for _, cache := range []int{-1, 64 << 10, 0} {
				t.Run(fmt.Sprintf("%s/cache=%d/seed=%d", o.name, cache, seed), func(t *testing.T) {
					t.Parallel()
					runModel(t, o, seed, cache, rounds)
				})
			}
		}
	}
}

func runModel(t *testing.T, o opener, seed uint64, cache, rounds int) {
	d := &driver{t: t, r: rand.New(rand.NewPCG(seed, 7)), model: newModel()}
	fs := filestest.NewCrashableMem()
	var eng engine.Engine
	d.store, eng = openStore(t, o, fs, cache)
	commits := []*model{d.model.clone()} // since the last flush
	for range rounds {
		d.batch()
		commits = append(commits, d.model.clone())
		d.reads()
		switch d.r.IntN(12) {
		case 0:
			if err := eng.Flush(); err != nil {
				t.Fatal(err)
			}
			commits = commits[len(commits)-1:]
		case 1, 2, 3:
			if _, err := d.store.CompactStep(1 + d.r.IntN(8)); err != nil {
				t.Fatal(err)
			}
		case 4, 5, 6:
			d.divide()
		}
		if d.r.IntN(50) == 0 {
			fs, eng = d.crash(o, fs, eng, cache, commits)
			commits = []*model{d.model.clone()}
		}
	}
	d.settle()
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// crash loses writes that were not synced and finds the commit that the store recovered.
func (d *driver) crash(
	o opener, fs *filestest.MemFS, eng engine.Engine, cache int, commits []*model,
) (*filestest.MemFS, engine.Engine) {
	d.t.Helper()
	clone := fs.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: d.r.IntN(101), RNG: d.r})
	if err := eng.Close(); err != nil {
		d.t.Fatal(err)
	}
	if d.r.IntN(2) == 0 { // the recovered store is like one that was filled from a file
		d.store, eng = openStore(d.t, o, clone, cache)
		if err := errors.Join(d.store.ForgetReplaced(), eng.Flush(), eng.Close()); err != nil {
			d.t.Fatal(err)
		}
	}
	d.store, eng = openStore(d.t, o, clone, cache)
	for i := len(commits) - 1; i >= 0; i-- {
		if commits[i].rev == d.store.Revision() && commits[i].compact == d.store.CompactRevision() {
			d.model = commits[i].clone()
			d.reads()
			return clone, eng
		}
	}
	d.t.Fatalf("after the crash the store is at revision %d, compacted %d: no commit since the last flush was there",
		d.store.Revision(), d.store.CompactRevision())
	return nil, nil
}

// settle finishes the compaction and checks all revisions that are left.
func (d *driver) settle() {
	d.t.Helper()
	hash, compact, _, err := d.store.HashKV(0)
	d.sameErr(nil, err)
	for done := false; !done; {
		var err error
		if done, err = d.store.CompactStep(5); err != nil {
			d.t.Fatal(err)
		}
	}
	after, compactAfter, _, err := d.store.HashKV(0)
	d.sameErr(nil, err)
	d.same("hash after physical compaction", []any{hash, compact}, []any{after, compactAfter})
	for !d.divide() {
	}
	for rev := max(d.model.compact, 1); rev <= d.model.rev; rev++ {
		d.count(rev)
		op := &kv.RangeOp{Key: []byte{0}, End: []byte{0}, Revision: rev}
		want, _ := d.model.readAs(op)
		got, _, err := d.store.Range(op)
		d.same(fmt.Sprintf("everything at revision %d", rev), want, got)
		d.sameErr(nil, err)
	}
	q := mvcc.EventQuery{From: max(d.model.compact, 1), MaxRevisions: 1 << 20, Prev: true}
	changes, next, err := d.store.EventsSince(q)
	d.sameErr(nil, err)
	d.same("next", d.model.rev+1, next)
	var want []mvcc.Change
	for rev := max(d.model.compact, 1); rev <= d.model.rev; rev++ {
		if events := d.model.events(rev, nil, true, d.model.compact); len(events) > 0 {
			want = append(want, mvcc.Change{Revision: rev, Events: events})
		}
	}
	d.same("all events that are left", want, changes)
	d.kept()
}

// divide makes a step of counting keys.
func (d *driver) divide() (done bool) {
	d.t.Helper()
	done, err := d.store.CountStep()
	d.sameErr(nil, err)
	if stats := d.store.CountStats(); stats.Corrected > 0 || done && stats.Unknown > 0 {
		d.t.Fatalf("counting found that counts were wrong: done %t, %+v", done, stats)
	}
	return done
}

// count compares the count of a range at a revision.
func (d *driver) count(rev kv.Revision) {
	d.t.Helper()
	op := &kv.RangeOp{Key: d.key(), Revision: rev, CountOnly: true}
	op.End = d.end(op.Key)
	want, wantErr := d.model.readAs(op)
	got, _, err := d.store.Range(op)
	d.same(fmt.Sprintf("count %+v", op), want, got)
	d.sameErr(wantErr, err)
}

// kept checks that physical compaction left exactly the versions that etcd would keep.
func (d *driver) kept() {
	d.t.Helper()
	want, decided := int64(0), map[string]bool{}
	for i := len(d.model.history) - 1; i >= 0; i-- {
		c := d.model.history[i]
		name := string(c.kv.Key)
		switch {
		case c.rev.Main >= d.model.compact, !decided[name] && !c.deleted:
			want++
		}
		if c.rev.Main <= d.model.compact {
			decided[name] = true
		}
	}
	d.same("versions kept", want, d.store.Size().Versions)
}
