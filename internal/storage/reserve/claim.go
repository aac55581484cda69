package reserve

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoRoom refuses what would take the disk below its reserve, with what others that are being written still need.
var ErrNoRoom = errors.New("reserve: the disk has no room for that beside its reserve")

// Claim is the room of a file that is being written beside the store. Its owner calls its methods one at a time.
type Claim struct {
	watch   *Watch
	claimed uint64 // that the file may have
	written uint64 // of that: it is not available any more
}

// Claim sets bytes aside for a file. The error is ErrNoRoom if less is available beyond the reserve than this file and all
// others that have a claim still need, or an operating error. The nil Watch has room. Release must be called once.
func (w *Watch) Claim(bytes int64) (*Claim, error) {
	c := &Claim{watch: w}
	if err := c.grow(uint64(max(bytes, 0))); err != nil {
		return nil, err
	}
	return c, nil
}

// Written says how long the file is. Beyond its claim it needs a new one for as much and an eighth more: the error is that of
// Watch.Claim, and the file must not grow any further.
func (c *Claim) Written(bytes int64) error {
	written := uint64(max(bytes, 0))
	if written > c.claimed {
		if err := c.grow(written/8 + written - c.claimed); err != nil {
			return err
		}
	}
	if c.watch != nil {
		c.watch.mu.Lock()
		defer c.watch.mu.Unlock()
		c.watch.pending -= written - c.written // a file never becomes shorter
	}
	c.written = written
	return nil
}

// Release ends the claim: the file is written as a whole, or is removed.
func (c *Claim) Release() {
	if c.watch == nil {
		return
	}
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	c.watch.pending -= c.claimed - c.written
	c.claimed = c.written
}

func (c *Claim) grow(bytes uint64) error {
	w := c.watch
	if w == nil {
		c.claimed += bytes
		return nil
	}
	available, err := w.ask()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if needed := w.bytes + w.pending + bytes; available != math.MaxUint64 && needed > available {
		return fmt.Errorf("%w: %d MiB are available, %d of them in reserve, %d claimed by others, and it needs %d", ErrNoRoom,
			available>>20, w.bytes>>20, w.pending>>20, bytes>>20)
	}
	w.pending += bytes
	c.claimed += bytes
	return nil
}
