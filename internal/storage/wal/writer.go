package wal

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
)

const (
	// Segments are small: a log is compacted often, and most of a large one is dead bytes, whose pages left the cache long ago.
	defaultSegmentBytes = 16 << 20
	minSegmentBytes     = 4 << 10
	maxSegmentBytes     = 1 << 30
	aheadBytes          = 1 << 20 // zeros are written so far ahead in a file that was never written before
)

// Options of a log. FS and Dir are required.
type Options struct {
	FS           env.FS
	Dir          string
	SegmentBytes int64 // a segment ends before the append that would pass it; 16 MiB if zero
	// NoSync lets the operating system decide when an append reaches the disk: a power loss may then take acknowledged appends.
	// Segments are still synced before their successors begin, so that a prefix of the log is left.
	NoSync bool
	Logger *slog.Logger // nothing is logged if nil
	// Written, if set, is called by Append between its write and its sync.
	Written func()
	// Check, if set, is called by Open with what it has read, before it changes anything; an error of it ends Open.
	Check func(*Recovered) error
	// PackFrom is the least size of a record that is packed, in bytes of items; 512 if zero.
	PackFrom int
	// Keys, if set, are those that records are sealed with. A log is sealed as a whole or not at all.
	Keys *atrest.Ring
}

func (o *Options) fill() error {
	if o.FS == nil || o.Dir == "" {
		return fmt.Errorf("wal: a file system and a directory are required")
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	o.SegmentBytes = min(max(align(o.SegmentBytes), minSegmentBytes), maxSegmentBytes)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// WAL is an open log. The package documentation says which goroutine may call what.
type WAL struct {
	options  Options
	identity Identity
	carried  carried
	segments []segment // oldest first; the last one is written
	spares   []uint64
	failed   error

	file    env.File // of the last segment
	seed    uint32
	box     *atrest.Box // nil: records are not sealed
	first   int64       // end of the carried state: where appends begin
	end     int64       // where the next record goes
	durable int64       // Invariant: durable <= end, and all bytes of the segment before it are on the disk
	filled  int64       // the file has written bytes up to here, so overwriting them changes no metadata

	buf      []byte
	boxed    []byte // the sealed record that is written
	encoder  encoder
	packer   packer
	counters counters
}

// Append makes batches durable with one write and one sync, all of them or none. The caller may reuse the batches when it
// returns. After an error other than ErrTooLarge the WAL is failed for good.
func (w *WAL) Append(batches ...Batch) error {
	if w.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, w.failed)
	}
	if w.file == nil {
		return ErrClosed
	}
	w.check(batches)
	record := append(w.buf[:0], make([]byte, recordHeaderBytes)...)
	record = slices.Grow(w.encoder.append(record, batches, &w.carried.pool), alignBytes)
	w.buf = record
	defer w.shrinkBuffer()
	items := len(record) - recordHeaderBytes
	switch {
	case items == 0:
		return nil
	case items > maxRecordBytes-w.overhead():
		return fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, items, maxRecordBytes-w.overhead())
	}
	packed := w.packer.pack(record)
	if err := w.write(packed); err != nil {
		return w.fail("append", err)
	}
	w.counters.appends.Add(1)
	if len(packed) < len(record) {
		w.counters.packed.Add(1)
	}
	w.counters.named.Add(w.encoder.named)
	w.counters.itemBytes.Add(uint64(items))
	w.counters.witnessBytes.Add(w.encoder.witness)
	reset := false
	for i := range batches {
		w.take(&batches[i])
		reset = reset || batches[i].Reset != nil
	}
	if reset {
		if err := w.release(); err != nil {
			return w.fail("free segments after a reset", err)
		}
	}
	return nil
}

// check asserts that the batches keep the laws of a log. Only a fault of the core breaks them, never its input.
func (w *WAL) check(batches []Batch) {
	base, last := w.carried.base.Position.Index, w.carried.last
	for i := range batches {
		b := &batches[i]
		if b.Reset != nil {
			base, last = b.Reset.Position.Index, b.Reset.Position.Index
		}
		for j := range b.Entries {
			index := b.Entries[j].Index
			if j == 0 && index > base {
				last = min(last, index-1)
			}
			if index <= base || index != last+1 { // checked first, because the text of a panic is allocated
				invariant.Broken("entry %d in a log that holds %d to %d", index, base+1, last)
			}
			last = index
		}
	}
}

// take applies a batch that is durable now to the WAL's state.
func (w *WAL) take(b *Batch) {
	if b.Reset != nil {
		cutTo(w.segments, 0)
	}
	if len(b.Entries) > 0 {
		cutTo(w.segments, b.Entries[0].Index-1)
		w.counters.entries.Add(uint64(len(b.Entries)))
	}
	w.carried.take(b)
	w.segments[len(w.segments)-1].last = w.carried.last
}

// cutTo records that no entry beyond last is live in these segments any more.
func cutTo(segments []segment, last consensus.Index) {
	for i := len(segments) - 1; i >= 0 && segments[i].last > last; i-- {
		segments[i].last = last
	}
}

// write puts record, whose items are in place, at the end of the log and syncs it.
func (w *WAL) write(record []byte) error {
	if w.end+w.span(record) > w.options.SegmentBytes && w.end > w.first {
		if err := w.rotate(); err != nil {
			return err
		}
	}
	if w.box != nil {
		w.boxed = boxRecord(w.box, w.boxed, record, w.end, w.durable)
		record = w.boxed
	}
	sealRecord(record, w.seed, w.end, w.durable)
	next := align(w.end + int64(len(record)))
	padded := append(record, zeros[:next-w.end-int64(len(record))]...)
	if _, err := w.file.WriteAt(padded, w.end); err != nil {
		return fmt.Errorf("write %s: %w", segmentName(w.current().number), err)
	}
	if err := w.fillAhead(next); err != nil {
		return fmt.Errorf("write %s: %w", segmentName(w.current().number), err)
	}
	w.counters.recordBytes.Add(uint64(next - w.end))
	w.end = next
	w.current().length, w.current().size = w.end, w.filled
	if w.options.NoSync {
		return nil
	}
	return w.sync()
}

// span is the length in the file of record, which is not sealed yet.
func (w *WAL) span(record []byte) int64 {
	return recordSpan(int64(len(record) - recordHeaderBytes + w.overhead()))
}

// overhead is how much longer the items of a record become when they are sealed.
func (w *WAL) overhead() int {
	if w.box != nil {
		return atrest.BoxOverhead
	}
	return 0
}

// boxRecord returns the record with sealed items, for its place, in the memory of buf where that suffices.
func boxRecord(box *atrest.Box, buf, record []byte, offset, durable int64) []byte {
	buf = slices.Grow(buf[:0], len(record)+atrest.BoxOverhead+alignBytes)[:recordHeaderBytes]
	return box.Seal(buf, record[recordHeaderBytes:], offset, uint32(durable))
}

// fillAhead writes zeros far beyond end where the file was never written: a sync that changes the length of a file or turns
// reserved blocks into written ones costs twice that of a plain overwrite (docs/adr/0004-wal-format.md has the figures). It
// writes page by page: one large write makes one large unit of the page cache, which every later small write would make dirty
// as a whole.
func (w *WAL) fillAhead(end int64) error {
	if end <= w.filled {
		return nil
	}
	w.filled = end
	if end >= w.options.SegmentBytes {
		return nil
	}
	upTo := min(end+min(aheadBytes, w.options.SegmentBytes/16), w.options.SegmentBytes)
	for w.filled < upTo {
		piece := min(upTo, w.filled/pageBytes*pageBytes+pageBytes) - w.filled
		if _, err := w.file.WriteAt(zeros[:piece], w.filled); err != nil {
			return err
		}
		w.counters.aheadBytes.Add(uint64(piece))
		w.filled += piece
	}
	return nil
}

// zeros pads records and fills files.
var zeros [pageBytes]byte

const pageBytes = 4096

func (w *WAL) sync() error {
	if w.options.Written != nil {
		w.options.Written()
	}
	if err := w.file.SyncData(); err != nil {
		return fmt.Errorf("sync %s: %w", segmentName(w.current().number), err)
	}
	w.counters.syncs.Add(1)
	w.durable = w.end
	return nil
}

func (w *WAL) current() *segment { return &w.segments[len(w.segments)-1] }

// fail makes every later call fail: after a failed sync the kernel may have dropped the pages, so a second sync that
// succeeds would prove nothing.
func (w *WAL) fail(doing string, err error) error {
	w.failed = fmt.Errorf("wal: %s: %w", doing, explain(w.options.Dir, err))
	return w.failed
}

func (w *WAL) shrinkBuffer() {
	if cap(w.buf) > keptBufferBytes {
		w.buf = nil
	}
	if cap(w.boxed) > keptBufferBytes {
		w.boxed = nil
	}
	w.packer.shrink()
}

// Close writes a mark that makes the last append provable, and closes the file. A failed WAL is closed as it is.
func (w *WAL) Close() error {
	if w.file == nil {
		return nil
	}
	var err error
	if w.failed == nil {
		if err = w.mark(markClosed); err != nil {
			err = w.fail("close", err)
		}
	}
	closed := w.file.Close()
	w.file = nil
	if err == nil && closed != nil {
		err = fmt.Errorf("wal: close: %w", closed)
	}
	return err
}

// mark writes a record that tells only how much is durable. First it syncs the appends of NoSync.
func (w *WAL) mark(why byte) error {
	if w.durable != w.end {
		if err := w.sync(); err != nil {
			return err
		}
	}
	record := append(w.buf[:0], make([]byte, recordHeaderBytes)...)
	record = append(record, byte(itemMark), why)
	if err := w.write(record); err != nil || !w.options.NoSync {
		return err
	}
	return w.sync()
}

// counters are read by other goroutines.
type counters struct {
	appends, packed, entries, named, syncs, recycled, created      atomic.Uint64
	itemBytes, witnessBytes, recordBytes, segmentBytes, aheadBytes atomic.Uint64
	segments, spares, diskBytes                                    atomic.Int64
}

// Stats are the counts of the WAL since it was opened.
type Stats struct {
	Appends      uint64
	Packed       uint64 // of Appends: their records are packed
	Entries      uint64
	Named        uint64 // of Entries: by name, without a payload
	Syncs        uint64 // of segment files, also those at rotations
	ItemBytes    uint64 // of appended records, without their heads and before they are packed
	WitnessBytes uint64 // of ItemBytes: witness records
	RecordBytes  uint64 // records as they are written, with heads and padding
	SegmentBytes uint64 // the heads of segments
	AheadBytes   uint64 // zeros written ahead
	Created      uint64 // segments in new files
	Recycled     uint64 // segments in overwritten files
	Segments     int    // live now
	Spares       int    // files that wait to be overwritten
	DiskBytes    int64  // reserved by both, as of the last rotation or compaction
}

// Stats may be called from any goroutine.
func (w *WAL) Stats() Stats {
	c := &w.counters
	return Stats{
		Appends: c.appends.Load(), Packed: c.packed.Load(), Entries: c.entries.Load(), Named: c.named.Load(),
		Syncs:     c.syncs.Load(),
		ItemBytes: c.itemBytes.Load(), WitnessBytes: c.witnessBytes.Load(), RecordBytes: c.recordBytes.Load(),
		SegmentBytes: c.segmentBytes.Load(), AheadBytes: c.aheadBytes.Load(),
		Created: c.created.Load(), Recycled: c.recycled.Load(),
		Segments: int(c.segments.Load()), Spares: int(c.spares.Load()), DiskBytes: c.diskBytes.Load(),
	}
}
