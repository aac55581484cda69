package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
)

// script runs a history against a file system that may fail or be cloned under it, and knows at every moment which state was
// acknowledged last and which ones were attempted since. states[0] is "no log".
type script struct {
	options wal.Options
	seed    uint64
	steps   int
	states  []model
	acked   int // index into states of the one that must survive
	failed  *wal.WAL
	named   uint64 // entries that were written by name
	packed  uint64 // records
}

func (s *script) attempt(m model) { s.states = append(s.states, m) }
func (s *script) ack()            { s.acked = len(s.states) - 1 }

// run returns the first error that the log gave.
func (s *script) run() error {
	h := newHistory(s.seed, 2500)
	s.states, s.acked, s.failed, s.named, s.packed = []model{{}}, 0, nil, 0, 0
	m := model{}
	s.attempt(m)
	w, err := wal.Create(s.options, identity)
	if err != nil {
		return err
	}
	s.ack()
	for range s.steps {
		switch k := h.rng.IntN(20); {
		case k == 0:
			s.named, s.packed = s.named+w.Stats().Named, s.packed+w.Stats().Packed
			if h.rng.IntN(2) == 0 {
				if err := w.Close(); err != nil {
					return err
				}
			}
			var got wal.Recovered
			if w, got, err = wal.Open(s.options); err != nil {
				return err
			}
			if d := m.differs(&got); d != "" {
				panic("reopened: " + d)
			}
		case k < 4:
			base, ok := h.base(&m)
			if !ok {
				continue
			}
			m = m.clone()
			m.compact(base)
			s.attempt(m)
			if err := w.Compact(base); err != nil {
				s.failed = w
				return err
			}
		default:
			b1 := h.batch(&m)
			m = m.clone()
			m.append(&b1)
			b2 := h.batch(&m)
			m.append(&b2)
			s.attempt(m)
			if err := w.Append(b1, b2); err != nil {
				s.failed = w
				return err
			}
		}
		s.ack()
	}
	s.named, s.packed = s.named+w.Stats().Named, s.packed+w.Stats().Packed
	return w.Close()
}

// match returns the index from acked on of the recovered state, the youngest if several are equal, or -1.
func match(states []model, acked int, got *wal.Recovered) int {
	for k := len(states) - 1; k >= max(acked, 1); k-- {
		if states[k].differs(got) == "" {
			return k
		}
	}
	return -1
}

// survive opens the log on fs as after a crash, checks its contents, and that it has exactly these after the next crash, in
// which all unsynced writes are lost, and that it can be written.
func survive(fs *filestest.MemFS, o wal.Options, states []model, acked int) error {
	o.FS = fs
	w, got, err := wal.Open(o)
	if errors.Is(err, wal.ErrNoLog) && acked == 0 {
		w, err = wal.Create(o, identity)
	}
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	k := match(states, acked, &got)
	if k < 0 {
		return fmt.Errorf("acked %d of %d: %s", acked, len(states)-1, states[acked].differs(&got))
	}
	o.FS = fs.CrashClone(filestest.CrashCloneCfg{})
	_, got, err = wal.Open(o)
	if err != nil || states[k].differs(&got) != "" {
		return fmt.Errorf("after a second crash: %v: %s", err, states[k].differs(&got))
	}
	h := newHistory(99, 3000)
	h.term = 1000
	m := states[k].clone()
	h.adopt(&m)
	for range 3 {
		b := h.batch(&m)
		m.append(&b)
		if err := w.Append(b); err != nil {
			return fmt.Errorf("append after the crash: %w", err)
		}
	}
	o.FS = fs.CrashClone(filestest.CrashCloneCfg{})
	if _, got, err = wal.Open(o); o.NoSync && err == nil {
		if match([]model{{}, states[k], m}, 1, &got) < 0 && len(got.Entries) > len(m.Entries) {
			return errors.New("after a third crash, more is there than was written")
		}
		return nil
	}
	if err != nil || m.differs(&got) != "" {
		return fmt.Errorf("after a third crash: %v: %s", err, m.differs(&got))
	}
	return nil
}

func changesDisk(op filestest.Op) bool { return op.Kind.ReadOrWrite() == filestest.OpIsWrite }

// Ensure that a power loss before any operation that changes the disk, with any part of the unsynced writes lost, leaves a
// state that is not older than the last acknowledged one.
func TestWAL_crash_atEveryOperation(t *testing.T) {
	for i, percent := range []int{0, 20, 50, 80, 100} {
		for seed := range crashSeeds() {
			sealed := (uint64(i)+seed/2)%2 == 1 // of scripts that pack and of those that do not
			t.Run(fmt.Sprintf("percent %d seed %d sealed %v", percent, seed, sealed), func(t *testing.T) {
				t.Parallel()
				crashEverywhere(t, percent, seed, false, sealed)
			})
		}
	}
}

// Ensure that without syncs a power loss leaves some earlier state, never a mixture, and never a log that is refused.
func TestWAL_crash_atEveryOperation_noSync(t *testing.T) {
	for seed := range crashSeeds() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, 50, seed, true, seed/2%2 == 0)
		})
	}
}

// stride is 1: every byte and every operation is tried. With -short it is odd, so that both odd and even ones are.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

// crashSeeds is the number of scripts that are crashed: every other one packs its records.
func crashSeeds() uint64 {
	if testing.Short() {
		return 2
	}
	return 4
}

func crashEverywhere(t *testing.T, percent int, seed uint64, noSync, sealed bool) {
	fs := memory()
	rng := rand.New(rand.NewPCG(seed, uint64(percent)))
	s := &script{seed: seed, steps: 50}
	s.options = sealedOptions(nil, 8<<10, sealed)
	s.options.NoSync = noSync
	if seed%2 == 1 {
		s.options.PackFrom = 1
	}
	ops := 0
	s.options.FS = filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
		if !changesDisk(op) || t.Failed() {
			return nil
		}
		ops++
		clone := fs.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
		acked := s.acked
		if noSync && acked > 0 {
			acked = 1
		}
		if err := survive(clone, s.options, s.states, acked); err != nil {
			t.Errorf("crash before operation %d (%d on %s), seed %d, percent %d: %v",
				ops, op.Kind, op.Path, seed, percent, err)
		}
		return nil
	}))
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if ops < 100 {
		t.Errorf("only %d operations were tried", ops)
	}
	if s.named < 5 {
		t.Errorf("only %d entries were written by name", s.named)
	}
	if seed%2 == 1 != (s.packed > 5) {
		t.Errorf("%d records were packed", s.packed)
	}
}

// Ensure that a crash at any operation of the recovery after a crash does no more harm than the first crash.
func TestOpen_crash_duringRecovery(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		fs := memory()
		rng := rand.New(rand.NewPCG(seed, 3))
		cfg := filestest.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}
		s := &script{seed: seed, steps: 40, options: sealedOptions(nil, 8<<10, seed%2 == 1)}
		left := rng.IntN(120) + 20
		var crashed *filestest.MemFS
		var acked, attempted int
		s.options.FS = filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
			if changesDisk(op) {
				if left--; left == 0 {
					crashed, acked, attempted = fs.CrashClone(cfg), s.acked, len(s.states)
				}
			}
			return nil
		}))
		if err := s.run(); err != nil || crashed == nil {
			t.Fatalf("seed %d: crashed %v, err %v", seed, crashed != nil, err)
		}
		o, states := s.options, s.states[:attempted]
		o.FS = filestest.Wrap(crashed, filestest.InjectorFunc(func(op filestest.Op) error {
			if changesDisk(op) {
				if err := survive(crashed.CrashClone(cfg), o, states, acked); err != nil {
					t.Errorf("seed %d: crash before operation %d on %s of the recovery: %v", seed, op.Kind, op.Path, err)
				}
			}
			return nil
		}))
		if _, _, err := wal.Open(o); err != nil && acked > 0 {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Ensure that an error of any operation fails the log for good, and that it loses no acknowledged state, whether the machine
// goes down after it or only the process.
func TestWAL_errorAtEveryOperation(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 0; ; n += stride() {
			fs := memory()
			left, hit := n, filestest.Op{}
			s := &script{seed: 5, steps: 40, options: options(nil, 8<<10)}
			s.options.FS = filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
				if left--; left == -1 {
					hit = op
					return cause
				}
				return nil
			}))
			err := s.run()
			if left >= 0 {
				if n < 100 {
					t.Errorf("only %d operations were tried", n)
				}
				break
			}
			where := fmt.Sprintf("error at operation %d (%d on %s)", n, hit.Kind, hit.Path)
			if err == nil || !errors.Is(err, cause) {
				t.Errorf("%s: got %v", where, err)
				continue
			}
			checkFailed(t, where, s, err, cause, changesDisk(hit))
			for _, survivor := range []*filestest.MemFS{fs.CrashClone(filestest.CrashCloneCfg{}), fs} {
				if err := survive(survivor, options(nil, 8<<10), s.states, s.acked); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
		}
	}
}

func checkFailed(t *testing.T, where string, s *script, err, cause error, writing bool) {
	t.Helper()
	if errors.Is(cause, syscall.ENOSPC) && writing {
		where := strings.TrimSuffix(dir, "/wal") // an error of the parent's sync names the parent
		if msg := err.Error(); !errors.Is(err, wal.ErrNoSpace) || !strings.Contains(msg, "no space left on "+where) ||
			!strings.Contains(msg, ": free space and restart") {
			t.Errorf("%s: a full disk is not named: %v", where, err)
		}
	}
	if s.failed == nil {
		return
	}
	h := newHistory(1, 10)
	b := wal.Batch{Witness: []wal.WitnessRecord{{Payload: h.bytes()}}}
	for _, again := range []error{s.failed.Append(b), s.failed.Compact(h.meta(s.states[s.acked].Base.Position))} {
		if !errors.Is(again, wal.ErrFailed) || !errors.Is(again, cause) {
			t.Errorf("%s: afterwards the log answers %v", where, again)
		}
	}
	if err := s.failed.Close(); err != nil {
		t.Errorf("%s: close: %v", where, err)
	}
}

// Ensure that Open writes again the bytes that no later record proves to be on the disk: after a failed sync and a restart of
// the process, the operating system may return them although the disk lacks them.
func TestOpen_rewritesUnprovenTail(t *testing.T) {
	fs := memory()
	w := must(wal.Create(options(fs, 8<<10), identity))
	var m model
	h := newHistory(1, 900)
	for range 5 {
		b := wal.Batch{Entries: []consensus.Entry{h.entry(m.last() + 1)}}
		m.append(&b)
		if err := w.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	var offsets []int64
	traced := filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind == filestest.OpFileWriteAt {
			offsets = append(offsets, op.Offset)
		}
		return nil
	}))
	if _, _, err := wal.Open(options(env.FS(traced), 8<<10)); err != nil {
		t.Fatal(err)
	}
	records := recordsIn(t, fs)
	last := records[len(records)-2].offset // before the mark that Open has just written
	if len(offsets) != 2 || offsets[0] != last || offsets[1] != records[len(records)-1].offset {
		t.Errorf("Open wrote at %v, want the last append at %d and then its mark", offsets, last)
	}
}
