package apply

import (
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/engine"
)

// position is the progress in the log. The goroutine that calls Apply moves it; any goroutine may read it.
type position struct {
	applied atomic.Pointer[consensus.Position]
	// begun is the index of the last entry of which a reader may see an effect: the leases and alarms of a batch are visible
	// before its revision, and the revision before applied.
	begun atomic.Uint64
}

func (p *position) load(eng engine.Engine) error {
	row, found, err := eng.Get(rowApplied)
	if err != nil || !found {
		return fmt.Errorf("%w: no applied mark: %w", ErrCorruptRow, err)
	}
	last, err := decodePosition(row)
	if err != nil {
		return err
	}
	p.begin(last.Index)
	p.finish(last)
	return nil
}

// begin notes that the entries up to index are being applied.
func (p *position) begin(index consensus.Index) { p.begun.Store(uint64(index)) }

// finish notes that they are applied.
func (p *position) finish(last consensus.Position) { p.applied.Store(&last) }

// last is the position of the last entry applied.
func (p *position) last() consensus.Position { return *p.applied.Load() }

// hasBegun reports whether readers may see an effect of the entry at index.
func (p *position) hasBegun(index consensus.Index) bool { return p.begun.Load() >= uint64(index) }
