package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// diskError says which store failed, and marks a full disk so that callers can tell.
func diskError(dir string, err error) error {
	err = plain(err)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: free space on the disk of %s and start again: %w", ErrNoSpace, dir, err)
	case errors.Is(err, pebble.ErrClosed):
		return ErrClosed
	case pebble.IsCorruptionError(err):
		return fmt.Errorf("%w: %s: replace this member: %w", ErrCorrupt, dir, err)
	}
	return fmt.Errorf("engine: %s: %w", dir, err)
}

// plainError is an error of Pebble with a text for people: Pebble lists every file that it misses on a line of its
// own, and marks corruption with a line that means nothing to an operator.
type plainError struct {
	text  string
	cause error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.cause }

const maxPlainBytes = 300

func plain(err error) error {
	text := strings.ReplaceAll(err.Error(), "<corruption detail carrier>", "")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxPlainBytes {
		text = strings.ToValidUTF8(text[:maxPlainBytes], "") + "…"
	}
	return &plainError{text, err}
}

// openError turns what Pebble says at Open into one line that tells what to do.
func openError(dir string, err error) error {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer) || errors.Is(err, ErrNoSpace) {
		return err // a read while opening has said it already
	}
	err = plain(err)
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return diskError(dir, err)
	case strings.Contains(text, "unknown format major version"), strings.Contains(text, "comparer name"):
		return fmt.Errorf("%w: %s: start the version that wrote it: %w", ErrNewer, dir, err)
	case errors.Is(err, syscall.EAGAIN), strings.Contains(text, "lock held by current process"):
		return fmt.Errorf("%w: %s: stop the other process first: %w", ErrLocked, dir, err)
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) && errno != syscall.ENOENT {
		return diskError(dir, err) // permissions, a failing disk: not the store's fault
	}
	return fmt.Errorf("%w: %s does not open: replace this member: %w", ErrCorrupt, dir, err)
}

// failureNow returns why nothing more can become durable, or nil.
func (e *lsm) failureNow() error {
	select {
	case <-e.failed:
	default:
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}

func (e *lsm) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure = diskError(e.options.Dir, err)
		close(e.failed)
		e.options.Logger.Error("store cannot go on", "err", e.failure)
	}
}

// listener receives Pebble's events, most of them with Pebble's locks held.
func (e *lsm) listener() pebble.EventListener {
	return pebble.EventListener{
		BackgroundError: e.onBackgroundError,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			e.fail(info.Details) // whichever goroutine met it: a member that cannot read all of its store must not go on
		},
		FlushBegin:           e.onFlushBegin,
		FlushEnd:             e.onFlushEnd,
		CompactionBegin:      func(pebble.CompactionInfo) { e.onCompactionBegin() },
		CompactionEnd:        func(pebble.CompactionInfo) { e.bounds.change() },
		BlobFileRewriteBegin: func(pebble.BlobFileRewriteInfo) { e.onCompactionBegin() },
		BlobFileRewriteEnd: func(info pebble.BlobFileRewriteInfo) {
			if info.Err == nil {
				e.rewritten.Add(info.Output.Size)
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			e.stalled.Store(true)
			e.stalls.Add(1)
			e.options.Logger.Warn("store stalls writes", "reason", info.Reason)
		},
		WriteStallEnd: func() { e.stalled.Store(false) },
	}
}

// onFlushBegin is told with Pebble's locks held. A flush of more than 1.5 memtables is late. Bytes are compared, as Pebble's
// first memtables are small.
func (e *lsm) onFlushBegin(info pebble.FlushInfo) {
	e.begun.Store(true)
	e.pacing.flush.begin(info.InputBytes > uint64(e.options.MemTableBytes)*3/2)
}

// onCompactionBegin is told with Pebble's locks held.
func (e *lsm) onCompactionBegin() {
	e.begun.Store(true)
	e.pacing.compaction.begin(false)
}

// onFlushEnd remembers a failure for onBackgroundError, which follows and does not say whose error it brings. A flush
// of nothing but deletions that cancel out makes no table: Pebble calls that an error, but it did succeed.
func (e *lsm) onFlushEnd(info pebble.FlushInfo) {
	e.bounds.change()
	err := info.Err
	if err != nil && strings.HasSuffix(err.Error(), "empty table") {
		err = nil
	}
	e.mu.Lock()
	e.flushErr = err
	e.mu.Unlock()
	if err == nil && e.options.Flushed != nil {
		e.options.Flushed(info.TotalDuration - e.pacing.flush.rests())
	}
	if err == nil && e.options.OnFlush != nil {
		e.options.OnFlush()
	}
}

// onBackgroundError tells failed flushes, after which nothing more becomes durable, from failed LSM compactions, which
// Pebble repeats unless it would panic (onPanicAhead). Damage ends the store by the event that is named so.
func (e *lsm) onBackgroundError(err error) {
	e.mu.Lock()
	flush := e.flushErr != nil
	e.mu.Unlock()
	if flush {
		e.fail(err)
		return
	}
	e.options.Logger.Error("store background work failed", "dir", e.options.Dir, "err", plain(err))
}

// pebbleLogger hands Pebble's log lines on. Pebble's diary is debug for us.
type pebbleLogger struct{ engine *lsm }

// Infof implements pebble.Logger.
func (l pebbleLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.engine.options.Logger.Error("store reports", "dir", l.engine.options.Dir, "err", fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger: it must not return, since Pebble does not know what its manifest holds. The error
// among args stays recognizable: the disk may be full.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	cause := &plainError{text: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause.cause = err
		}
	}
	l.engine.die(cause)
}

// onPanicAhead ends the process if Pebble's goroutines have begun to write. Before, Pebble panics in the goroutine of Open,
// which recovers.
func (e *lsm) onPanicAhead(err error) {
	if e.begun.Load() {
		e.die(err)
	}
}

// die ends the process. It does not return.
func (e *lsm) die(cause error) {
	err := diskError(e.options.Dir, fmt.Errorf("cannot go on: %w", cause))
	e.options.Logger.Error("store cannot go on", "err", err)
	if e.options.OnFatal != nil {
		e.options.OnFatal(err)
	}
	panic(err.Error())
}

// BoundBytes implements Engine.
func (e *lsm) BoundBytes() int64 {
	if e.closed.Load() {
		return 0
	}
	return e.bounds.count(e.db)
}

// Stats implements Engine.
func (e *lsm) Stats() Stats {
	if e.closed.Load() {
		return Stats{}
	}
	m := e.db.Metrics()
	s := Stats{
		L0Files:             int(m.Levels[0].TablesCount),
		L0Sublevels:         int(m.Levels[0].Sublevels),
		ReadAmplification:   m.ReadAmp(),
		MemTableBytes:       m.MemTable.Size,
		DiskBytes:           diskBytes(m),
		LiveBytes:           m.Table.Local.LiveSize,
		BoundBytes:          e.bounds.count(e.db),
		Flushes:             m.Flush.Count,
		Compactions:         m.Compact.Count,
		FlushRests:          time.Duration(e.pacing.flush.rested.Load()),
		CompactionRests:     time.Duration(e.pacing.compaction.rested.Load()),
		CompactionDebtBytes: m.Compact.EstimatedDebt,
		CacheBytes:          m.BlockCache.Size,
		CacheHits:           m.BlockCache.Hits,
		CacheMisses:         m.BlockCache.Misses,
		Stalled:             e.stalled.Load(),
		Stalls:              e.stalls.Load(),
		RewrittenValues:     e.rewritten.Load(),
	}
	for i := range m.Levels {
		l := &m.Levels[i]
		s.FlushedValues += l.BlobBytesFlushed
		s.CompactedValues += l.BlobBytesCompacted - l.BlobBytesFlushed // Pebble counts what a flush writes in both
		s.FlushedBytes += l.TableBytesFlushed
		s.CompactedBytes += l.TableBytesCompacted
	}
	s.FlushedBytes += s.FlushedValues
	s.CompactedBytes += s.CompactedValues
	garbage := m.Table.Garbage.PointDeletionsBytesEstimate + m.Table.Garbage.RangeDeletionsBytesEstimate
	s.LiveBytes -= min(garbage, s.LiveBytes)
	if b := &m.BlobFiles; b.ValueSize > 0 {
		s.LiveBytes += uint64(float64(b.LiveSize) * float64(b.ReferencedValueSize) / float64(b.ValueSize))
	}
	s.Pressure = max(float64(s.L0Sublevels)/l0StopWrites, float64(m.MemTable.Count-1)/3)
	s.Pressure = min(s.Pressure, 1)
	if s.Stalled {
		s.Pressure = 1
	}
	return s
}

// diskBytes returns the size of all files. Pebble 2.1 counts local files of values from the opening of a store on: those from
// before are missing, and what is deleted of them is subtracted all the same.
func diskBytes(m *pebble.Metrics) uint64 {
	return m.DiskSpaceUsage() - m.BlobFiles.Local.LiveSize + m.BlobFiles.LiveSize
}
