package stores_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/sim/stores"
	"github.com/quorate/quorate/internal/storage/engine"
)

const slot = 3

func open(t *testing.T, s *stores.Stores, fs *disk.FS) engine.Engine {
	t.Helper()
	store, _ := s.On(slot, fs)
	if err := fs.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := store("/data/store")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func set(e engine.Engine, key string, value []byte) error {
	b := e.NewBatch()
	b.Set([]byte(key), value)
	return errors.Join(b.Commit(), b.Close())
}

// syncDirs makes the directories above the store durable, as package datadir does.
func syncDirs(fs *disk.FS) error {
	for _, name := range []string{"/", "/data"} {
		d, err := fs.OpenDir(name)
		if err == nil {
			err = d.Sync()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func newStores(t *testing.T, lying bool) *stores.Stores {
	t.Helper()
	s, err := stores.New(stores.Pebble, lying, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Ensure that flushes and LSM compactions happen, and that no work goes on on the disk once a call has returned.
func TestStores_pebble_compacts(t *testing.T) {
	fs := disk.New()
	e := open(t, newStores(t, false), fs)
	for i := range 200 {
		if err := set(e, fmt.Sprintf("s%03d", i%50), make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	if stats := e.Stats(); stats.Flushes < 10 || stats.Compactions == 0 {
		t.Errorf("%d flushes, %d compactions", stats.Flushes, stats.Compactions)
	}
	it, err := e.NewIter([]byte("s"), []byte("t"))
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for ok := it.First(); ok; ok = it.Next() {
		keys++
	}
	if err := errors.Join(it.Error(), it.Close(), e.Close()); err != nil || keys != 50 {
		t.Errorf("%d keys, %v", keys, err)
	}
}

// Ensure that a crash loses unflushed writes, and nothing else.
func TestStores_pebble_crash(t *testing.T) {
	for seed := range uint64(20) {
		s, fs, rng := newStores(t, false), disk.New(), rand.New(rand.NewPCG(seed, 0))
		e := open(t, s, fs)
		if err := errors.Join(set(e, "s1", nil), e.Flush(), syncDirs(fs), set(e, "s2", nil)); err != nil {
			t.Fatal(err)
		}
		if seed%2 == 1 {
			fs.DieAfter(rng.IntN(12)) // in the middle of the flush
			_ = e.Flush()
		}
		fs = fs.Crash(disk.Torn, rng)
		s.End(slot)
		e = open(t, s, fs)
		_, one, err := e.Get([]byte("s1"))
		if err != nil || !one {
			t.Errorf("seed %d: what was flushed: %t, %v", seed, one, err)
		}
		if _, two, err := e.Get([]byte("s2")); err != nil || two && seed%2 == 0 {
			t.Errorf("seed %d: what was not flushed: %t, %v", seed, two, err)
		}
	}
}

// Ensure that the faults of the disk reach Pebble's files, and that none of them stops the simulation.
func TestStores_pebble_faults(t *testing.T) {
	for name, strike := range map[string]func(*disk.FS){
		"full":   func(fs *disk.FS) { fs.Full = true },
		"broken": func(fs *disk.FS) { fs.Broken = true },
		"dead":   func(fs *disk.FS) { fs.DieAfter(0) },
	} {
		s, fs := newStores(t, false), disk.New()
		e := open(t, s, fs)
		if err := set(e, "s1", nil); err != nil {
			t.Fatal(err)
		}
		strike(fs)
		if err := e.Flush(); err == nil {
			t.Errorf("%s: a flush succeeds", name)
		}
		if err := set(e, "s2", nil); err == nil {
			t.Errorf("%s: a commit succeeds after it", name)
		}
		s.End(slot)
	}
}

// Ensure that a store whose syncs do nothing does not open after a crash, or has lost writes that it called durable.
func TestStores_pebble_lies(t *testing.T) {
	s, fs := newStores(t, true), disk.New()
	e := open(t, s, fs)
	if err := errors.Join(set(e, "s1", nil), e.Flush(), syncDirs(fs)); err != nil {
		t.Fatal(err)
	}
	fs = fs.Crash(disk.LoseAll, nil)
	s.End(slot)
	store, _ := s.On(slot, fs)
	if e, err := store("/data/store"); err == nil {
		if _, found, err := e.Get([]byte("s1")); err == nil && found {
			t.Error("what was never synced survives")
		}
	}
}

// Ensure that an unknown engine is an error.
func TestNew_unknown(t *testing.T) {
	if _, err := stores.New("rocks", false, false); !errors.Is(err, stores.ErrUnknown) {
		t.Errorf("got %v, want %v", err, stores.ErrUnknown)
	}
}
