package wal

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// Compact records durably that entries up to base are not needed, and frees the segments that held only such entries. A base
// that is not beyond the present one changes nothing. The segment being written is never freed, so the log takes at most one
// segment more than its live entries do.
func (w *WAL) Compact(base consensus.SnapshotMeta) error {
	if w.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, w.failed)
	}
	if w.file == nil {
		return ErrClosed
	}
	if base.Position.Index <= w.carried.base.Position.Index {
		return nil
	}
	if base.Position.Index > w.carried.last {
		return fmt.Errorf("wal: compact to %d: the log ends at %d", base.Position.Index, w.carried.last)
	}
	record := append(w.buf[:0], make([]byte, recordHeaderBytes)...)
	record = consensus.AppendSnapshotMeta(append(record, byte(itemBase)), &base)
	if err := w.write(record); err != nil {
		return w.fail("compact", err)
	}
	w.carried.base = base
	if err := w.release(); err != nil {
		return w.fail("compact", err)
	}
	return nil
}

// release frees the oldest segments that hold no live entry. The next segment repeats the state that they carried.
func (w *WAL) release() error {
	n := w.releasable()
	if n == 0 {
		return nil
	}
	if w.durable != w.end { // the state that replaces the segments must be on the disk before they go
		if err := w.sync(); err != nil {
			return err
		}
	}
	for _, s := range w.segments[:n] {
		if err := w.retire(s.number); err != nil {
			return err
		}
	}
	w.segments = append(w.segments[:0], w.segments[n:]...)
	if err := syncDir(w.options.FS, w.options.Dir); err != nil {
		return err
	}
	w.count()
	w.options.Logger.Debug("freed log segments", "segments", n, "index", uint64(w.carried.base.Position.Index))
	return nil
}

func (w *WAL) releasable() int {
	n := 0
	for n < len(w.segments)-1 && w.segments[n].last <= w.carried.base.Position.Index {
		n++
	}
	return n
}
