package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/sim/disk"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/engine"
)

// The names of the engines.
const (
	Memory = "memory"
	Pebble = "pebble"
)

// ErrUnknown is returned for an unknown name of an engine.
var ErrUnknown = errors.New("sim: unknown engine")

const (
	// memTableBytes is so large that Pebble does not flush by itself: the size of its memtables depends on chance.
	memTableBytes = 64 * flushBytes
	cacheBytes    = 256 << 10
)

// Stores are the engines of all machines of one world.
type Stores struct {
	pebble   bool
	lying    bool
	machines map[int]*machine // by slot
	keys     *atrest.Ring     // of all disks; nil: they are not encrypted
}

// New returns the stores of a world whose machines have the engine of that name; an empty name means Memory. With lying, syncs
// of Pebble do nothing: a negative control. With encrypted, all disks are: bytes on them differ from run to run then, and
// nothing else does. The error is ErrUnknown.
func New(name string, lying, encrypted bool) (s *Stores, err error) {
	switch name {
	case "", Memory, Pebble:
		s = &Stores{pebble: name == Pebble, lying: lying, machines: map[int]*machine{}}
		if encrypted {
			s.keys, err = newRing()
		}
		return s, err
	}
	return nil, fmt.Errorf("%w %q: there are %s and %s", ErrUnknown, name, Memory, Pebble)
}

// Over returns the file system with which a process uses a disk, and the keys of its log; nil if it is not encrypted.
func (s *Stores) Over(fs *disk.FS) (env.FS, *atrest.Ring) { return s.over(fs), s.keys }

// Rotate begins a new key of encrypted disks, as long as there are not many.
func (s *Stores) Rotate() error {
	if s.keys == nil {
		return nil
	}
	if all, _, _ := s.keys.Keys(); len(all) >= mostKeys {
		return nil
	}
	_, err := s.keys.Rotate(context.Background(), nil, time.Time{})
	return err
}

// over is the file system of a store.
func (s *Stores) over(fs env.FS) env.FS {
	if s.keys == nil {
		return fs
	}
	return atrest.NewFS(fs, s.keys)
}

// On returns the functions that open the stores, and views of copies of them, of the process on the machine in a slot, while
// its disk is fs.
func (s *Stores) On(slot int, fs *disk.FS) (open, view func(dir string) (engine.Engine, error)) {
	if !s.pebble {
		open = func(dir string) (engine.Engine, error) {
			return engine.OpenMem(engine.MemOptions{FS: s.over(fs), Dir: dir})
		}
		return open, nil
	}
	m := s.machines[slot]
	if m == nil {
		m = &machine{turn: newTurn()}
		s.machines[slot] = m
	}
	shared := &sharedFS{FS: fs, turn: m.turn, lying: s.lying}
	open = func(dir string) (engine.Engine, error) {
		return m.open(fs, func(fatal func(error)) (engine.Engine, error) {
			return engine.Open(engine.Options{
				FS: s.over(shared), Dir: dir, CacheBytes: cacheBytes, MemTableBytes: memTableBytes, OnFatal: fatal,
			})
		})
	}
	view = func(dir string) (engine.Engine, error) {
		return m.open(fs, func(func(error)) (engine.Engine, error) {
			return engine.OpenView(s.over(shared), dir, 1<<20, discard)
		})
	}
	return open, view
}

// machine has the engines of the process on one machine.
type machine struct {
	turn    turn
	engines []*pebble // of this process; some may be closed
}

func (m *machine) open(fs *disk.FS, make func(fatal func(error)) (engine.Engine, error)) (engine.Engine, error) {
	e, err := openPebble(m.turn, fs, make)
	if err != nil {
		return nil, err
	}
	m.engines = append(m.engines, e)
	return e, nil
}

// stop closes the engines that the process did not close.
func (m *machine) stop() {
	for _, e := range m.engines {
		_ = e.Close() // the process is gone: its errors do not matter
	}
	m.engines = nil
}

var discard = slog.New(slog.DiscardHandler)

// End ends the engines of the process that ran on the machine in a slot. A process that was killed has a dead disk by then.
func (s *Stores) End(slot int) {
	if m := s.machines[slot]; m != nil {
		m.stop()
	}
}

// Close ends the engines of all machines.
func (s *Stores) Close() {
	for _, m := range s.machines {
		m.stop()
	}
}

var _ env.FS = (*sharedFS)(nil)
