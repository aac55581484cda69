package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/atrest/atresttest"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// pair drives both engines with the same operations.
type pair struct {
	t    *testing.T
	r    *rand.Rand
	fs   [2]*filestest.MemFS
	both [2]engine.Engine
	over func(env.FS) env.FS // the file system of the engines on a disk
}

// encryptedIf returns what encrypts a disk, or does not.
func encryptedIf(encrypted bool) func(env.FS) env.FS {
	ring := atresttest.Ring()
	return func(fs env.FS) env.FS {
		if encrypted {
			return atrest.NewFS(fs, ring)
		}
		return fs
	}
}

func (p *pair) open() {
	p.t.Helper()
	var err error
	options := engine.Options{FS: p.over(p.fs[0]), Dir: "/a/store", MemTableBytes: 64 << 10, CacheBytes: 1 << 20}
	p.both[0], err = engine.Open(options)
	p.must(err)
	p.both[1], err = engine.OpenMem(engine.MemOptions{FS: p.over(p.fs[1]), Dir: "/a/store"})
	p.must(err)
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) each(do func(e engine.Engine) error) {
	p.t.Helper()
	for _, e := range p.both {
		p.must(do(e))
	}
}

// versioned makes a key with a prefix and a suffix; names hold escapes.
func versioned(name []byte, version uint64) []byte {
	key := []byte{engine.VersionedTable}
	for _, c := range name {
		if key = append(key, c); c == 0 {
			key = append(key, 0xff)
		}
	}
	key = binary.BigEndian.AppendUint64(append(key, 0, 1), ^version)
	return append(key, 0xff, 0xff, 0xff, 0xff)
}

func (p *pair) key() []byte {
	name := make([]byte, 1+p.r.IntN(3))
	for i := range name {
		name[i] = []byte{0, 1, 'x', 0xff}[p.r.IntN(4)]
	}
	if p.r.IntN(3) == 0 {
		return append([]byte{'q'}, name...)
	}
	return versioned(name, p.r.Uint64N(5))
}

func (p *pair) write() {
	type op struct {
		kind       int
		key, value []byte
	}
	var ops []op
	for range 1 + p.r.IntN(8) {
		o := op{kind: p.r.IntN(8), key: p.key(), value: make([]byte, p.r.IntN(200))}
		if p.r.IntN(8) == 0 {
			o.value = make([]byte, p.r.IntN(4000)) // from 1 KiB on it lies apart from its key
		}
		for i := range o.value {
			o.value[i] = byte(p.r.Uint32())
		}
		if o.kind == 0 {
			o.value = p.key()
			if bytes.Compare(o.key, o.value) > 0 {
				o.key, o.value = o.value, o.key
			}
		}
		ops = append(ops, o)
	}
	p.each(func(e engine.Engine) error {
		b := e.NewBatch()
		for _, o := range ops {
			switch o.kind {
			case 0:
				if !bytes.Equal(o.key, o.value) {
					b.DeleteRange(o.key, o.value)
				}
			case 1, 2:
				b.Delete(o.key)
			default:
				b.Set(o.key, o.value)
			}
		}
		return errors.Join(b.Commit(), b.Close())
	})
}

// walk does the same moves on an iterator of each engine.
func (p *pair) walk() {
	var lower, upper []byte
	if p.r.IntN(2) == 0 {
		lower = p.key()
	}
	if p.r.IntN(2) == 0 {
		upper = p.key()
		upper = upper[:engine.Split(upper)]
	}
	if lower != nil && upper != nil && bytes.Compare(lower, upper) >= 0 {
		return
	}
	var its [2]engine.Iterator
	for i, e := range p.both {
		var err error
		its[i], err = e.NewIter(lower, upper)
		p.must(err)
	}
	within := false
	for range 12 {
		kind, key := p.r.IntN(8), p.key()
		if kind >= 5 && !its[0].Valid() || within && kind > 5 || kind == 4 && lower != nil && bytes.Compare(key, lower) < 0 ||
			kind == 4 && upper != nil && bytes.Compare(key, upper) >= 0 {
			continue
		}
		if kind < 5 {
			within = kind == 4
		}
		var got [2]string
		for i, it := range its {
			valid := []func() bool{
				it.First, it.Last, func() bool { return it.SeekGE(key) }, func() bool { return it.SeekLT(key) },
				func() bool { return it.SeekPrefix(key) }, it.Next, it.Prev, it.NextPrefix,
			}[kind]()
			if got[i] = fmt.Sprint(valid, it.Valid()); valid {
				got[i] = fmt.Sprintf("%x=%d:%x", it.Key(), it.ValueLen(), it.Value())
			}
		}
		if got[0] != got[1] {
			p.t.Fatalf("move %d to %x within %x, %x: Pebble %s, memory %s", kind, key, lower, upper, got[0], got[1])
		}
	}
	for _, it := range its {
		p.must(errors.Join(it.Error(), it.Close()))
	}
}

func (p *pair) gets() {
	key := p.key()
	var got [2]string
	for i, e := range p.both {
		value, found, err := e.Get(key)
		p.must(err)
		got[i] = fmt.Sprint(found, value)
	}
	if got[0] != got[1] {
		p.t.Fatalf("get %x: Pebble %s, memory %s", key, got[0], got[1])
	}
}

func TestEngine_memoryEqualsPebble(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			p := &pair{t: t, r: rand.New(rand.NewPCG(seed, 3)), fs: [2]*filestest.MemFS{filestest.NewCrashableMem(), filestest.NewCrashableMem()}}
			p.over = encryptedIf(seed%2 == 1)
			p.open()
			for range 400 {
				p.write()
				p.walk()
				p.gets()
				switch p.r.IntN(60) {
				case 0:
					p.each(engine.Engine.Flush)
				case 1:
					p.each(func(e engine.Engine) error { return e.Defragment(t.Context()) })
				case 2:
					p.each(func(e engine.Engine) error { return errors.Join(e.Flush(), e.Close()) })
					for i := range p.fs {
						p.fs[i] = p.fs[i].CrashClone(filestest.CrashCloneCfg{})
					}
					p.open()
				}
			}
			p.each(engine.Engine.Close)
		})
	}
}

func openOnly(t *testing.T, kind string, fs env.FS, onFlush func()) engine.Engine {
	t.Helper()
	var e engine.Engine
	var err error
	if kind == "mem" {
		e, err = engine.OpenMem(engine.MemOptions{FS: fs, Dir: "/s", OnFlush: onFlush})
	} else {
		e, err = engine.Open(engine.Options{FS: fs, Dir: "/s", MemTableBytes: 64 << 10, OnFlush: onFlush})
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func set(t *testing.T, e engine.Engine, number uint64, size int) {
	t.Helper()
	b := e.NewBatch()
	b.Set([]byte("zcounter"), binary.BigEndian.AppendUint64(nil, number))
	b.Set(fmt.Appendf(nil, "zrow%06d", number), make([]byte, size))
	if err := errors.Join(b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, get func([]byte) ([]byte, bool, error)) uint64 {
	t.Helper()
	value, found, err := get([]byte("zcounter"))
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// A power loss leaves the store at some commit, with all commits before it and none after it, and not before what
// GetDurable showed.
func TestEngine_crash_leavesPrefix(t *testing.T) {
	for _, kind := range []string{"pebble", "mem"} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/seed=%d", kind, seed), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(seed, 5))
				fs := filestest.NewCrashableMem()
				e := openOnly(t, kind, fs, nil)
				last := uint64(0)
				for range 6 {
					for range r.IntN(200) {
						last++
						set(t, e, last, r.IntN(3000))
						if r.IntN(100) == 0 {
							if err := e.Flush(); err != nil {
								t.Fatal(err)
							}
							if got := number(t, e.GetDurable); got != last {
								t.Fatalf("durable after a flush: got %d, want %d", got, last)
							}
						}
					}
					durable := number(t, e.GetDurable)
					clone := fs.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					fs, e = clone, openOnly(t, kind, clone, nil)
					got := number(t, e.Get)
					if got < durable || got > last {
						t.Fatalf("after the crash: got %d, want %d to %d", got, durable, last)
					}
					it, err := e.NewIter([]byte("zrow"), []byte("zrox"))
					if err != nil {
						t.Fatal(err)
					}
					rows := uint64(0)
					for ok := it.First(); ok; ok = it.Next() {
						if rows++; len(it.Value()) != it.ValueLen() {
							t.Errorf("row %s: a value of %d bytes, want %d", it.Key(), len(it.Value()), it.ValueLen())
						}
					}
					if err := errors.Join(it.Error(), it.Close()); err != nil {
						t.Fatal(err)
					}
					if rows != got {
						t.Fatalf("after the crash: counter %d, but %d rows", got, rows)
					}
					last = got
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestEngine_Checkpoint_isStoreOfItsOwn(t *testing.T) {
	for _, kind := range []string{"pebble", "mem"} {
		t.Run(kind, func(t *testing.T) {
			fs := filestest.NewMem()
			flushes := 0
			e := openOnly(t, kind, fs, func() { flushes++ })
			set(t, e, 7, 10)
			if err := e.Checkpoint("/copy"); err != nil {
				t.Fatal(err)
			}
			set(t, e, 8, 10)
			var c engine.Engine
			var err error
			if kind == "mem" {
				c, err = engine.OpenMem(engine.MemOptions{FS: fs, Dir: "/copy"})
			} else {
				c, err = engine.Open(engine.Options{FS: fs, Dir: "/copy"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := number(t, c.Get); got != 7 {
				t.Errorf("the checkpoint has %d, want 7", got)
			}
			if got := number(t, e.Get); got != 8 {
				t.Errorf("the store has %d, want 8", got)
			}
			if err := errors.Join(e.Close(), c.Close()); err != nil {
				t.Error(err)
			}
			if flushes == 0 {
				t.Error("OnFlush was not called")
			}
		})
	}
}

// An iterator keeps what it saw while everything under it changes.
func TestIterator_isSnapshot(t *testing.T) {
	for _, kind := range []string{"pebble", "mem"} {
		t.Run(kind, func(t *testing.T) {
			e := openOnly(t, kind, filestest.NewMem(), nil)
			for i := range uint64(50) {
				set(t, e, i, 10)
			}
			it, err := e.NewIter([]byte("zrow"), nil)
			if err != nil {
				t.Fatal(err)
			}
			b := e.NewBatch()
			b.DeleteRange([]byte("z"), []byte("zz"))
			if err := errors.Join(b.Commit(), b.Close(), e.Flush()); err != nil {
				t.Fatal(err)
			}
			rows := 0
			for ok := it.First(); ok; ok = it.Next() {
				rows++
			}
			if rows != 50 {
				t.Errorf("got %d rows, want 50", rows)
			}
			if err := errors.Join(it.Close(), e.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Large values lie apart from their keys, and small ones do not.
func TestEngine_largeValuesLieApart(t *testing.T) {
	fs := filestest.NewMem()
	for round, size := range []int{100, 4096, 4096} {
		e := openOnly(t, "pebble", fs, nil)
		before := valueFiles(t, fs)
		set(t, e, uint64(round), size)
		if err := errors.Join(e.Flush(), e.Close()); err != nil {
			t.Fatal(err)
		}
		if got := valueFiles(t, fs) > before; got != (size > 1000) {
			t.Errorf("round %d: a value of %d bytes lies apart: %v", round, size, got)
		}
	}
}

func valueFiles(t *testing.T, fs env.FS) (count int) {
	t.Helper()
	names, err := fs.List("/s")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".blob") {
			count++
		}
	}
	return count
}

// The promises of Defragment hold for values that lie apart from their keys, too.
func TestEngine_Defragment_separatedValues(t *testing.T) {
	e := openOnly(t, "pebble", filestest.NewMem(), nil)
	const rows = 400
	r := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 4096)
	for i := range rows {
		for j := range value {
			value[j] = byte(r.Uint32())
		}
		b := e.NewBatch()
		b.Set(versioned([]byte{'k', byte(i), byte(i >> 8)}, 1), value)
		if err := errors.Join(b.Commit(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := e.Stats(); got.CompactedBytes != 0 || got.FlushedValues < rows*4096 || got.FlushedBytes <= got.FlushedValues {
		t.Errorf("%d bytes flushed, %d of them values, and %d compacted, want %d values and nothing compacted",
			got.FlushedBytes, got.FlushedValues, got.CompactedBytes, rows*4096)
	}
	b := e.NewBatch()
	for i := range rows {
		if i%4 != 0 {
			b.SingleDelete(versioned([]byte{'k', byte(i), byte(i >> 8)}, 1))
		}
	}
	if err := errors.Join(b.Commit(), b.Close(), e.Defragment(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got, most := e.Stats().LiveBytes, uint64(rows/4*4096*11/10); got > most {
		t.Errorf("%d bytes of tables and values live, want at most %d", got, most)
	}
	// Pebble may rewrite a value file at the same time, so that what is left is copied twice; what was deleted is not.
	if got := e.Stats().CompactedValues; got < rows/4*4096 || got > 2*rows/4*4096*11/10 {
		t.Errorf("%d bytes of values were copied, want those of %d rows, twice at most", got, rows/4)
	}
	most := uint64(rows / 4 * 4096 * 13 / 10)
	for range 1 << 20 { // old files are removed in the background
		if e.Stats().DiskBytes <= most {
			break
		}
		runtime.Gosched()
	}
	if got := e.Stats().DiskBytes; got > most {
		t.Errorf("%d bytes on disk, want at most %d", got, most)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
