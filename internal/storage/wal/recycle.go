package wal

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// maxSpares bounds the files kept for reuse. Compaction frees several segments at once, up to where the store is durable, and
// they are written again before the next compaction.
const maxSpares = 6

// rotate seals the current segment and begins the next one, which repeats the carried state.
func (w *WAL) rotate() error {
	if w.durable != w.end {
		if err := w.sync(); err != nil {
			return err
		}
	}
	if err := w.begin(w.current().number+1, w.end); err != nil {
		return err
	}
	w.count()
	return nil
}

// begin makes segment number in a spare or new file. The file gets its name only once its first record is durable, and it is
// written only once its name is: the older log is whole after any power loss.
func (w *WAL) begin(number uint64, sealed int64) error {
	h := header{identity: w.identity, number: number, sealed: sealed}
	if keys := w.options.Keys; keys != nil { // drawn anew for each use of a file
		h.key = &keyed{id: keys.Active().ID, salt: atrest.NewSalt()}
	}
	box, err := h.box(w.options.Keys)
	if err != nil {
		return err
	}
	seed := h.seed()
	head := appendHeader(nil, &h)
	record := w.carried.append(make([]byte, recordHeaderBytes))
	if len(record)-recordHeaderBytes > maxRecordBytes-atrest.BoxOverhead {
		return fmt.Errorf("%w: %d bytes of carried state", ErrTooLarge, len(record))
	}
	if box != nil {
		record = boxRecord(box, nil, record, h.length(), h.length())
	}
	sealRecord(record, seed, h.length(), h.length())
	head = append(head, record...)
	head = append(head, make([]byte, align(int64(len(head)))-int64(len(head)))...)

	file, spare, size, err := w.takeFile(number)
	if err != nil {
		return err
	}
	if err := w.install(file, head, spare, segmentName(number)); err != nil {
		_ = file.Close()
		return err
	}
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			_ = file.Close()
			return fmt.Errorf("close sealed segment: %w", err)
		}
	}
	w.file, w.seed, w.box = file, seed, box
	w.first = int64(len(head))
	w.end, w.durable, w.filled = w.first, w.first, max(w.first, size)
	w.segments = append(w.segments, segment{number: number, length: w.end, size: w.filled, last: w.carried.last})
	return nil
}

// install writes head, syncs it, and gives the file its final name.
func (w *WAL) install(file env.File, head []byte, spare, name string) error {
	fs, dir := w.options.FS, w.options.Dir
	w.counters.segmentBytes.Add(uint64(len(head)))
	if _, err := file.WriteAt(head, 0); err != nil {
		return fmt.Errorf("write head of %s: %w", name, err)
	}
	if err := file.SyncData(); err != nil {
		return fmt.Errorf("sync head of %s: %w", name, err)
	}
	w.counters.syncs.Add(1)
	if err := fs.Rename(spare, fs.PathJoin(dir, name)); err != nil {
		return fmt.Errorf("name %s: %w", name, err)
	}
	return syncDir(fs, dir)
}

// takeFile opens a spare, whose written bytes make later syncs cheap, or a new file with its space reserved.
func (w *WAL) takeFile(number uint64) (file env.File, name string, size int64, err error) {
	fs := w.options.FS
	if n := len(w.spares); n > 0 {
		name = fs.PathJoin(w.options.Dir, spareName(w.spares[n-1]))
		w.spares = w.spares[:n-1]
		if file, err = fs.OpenReadWrite(name); err != nil {
			return nil, "", 0, fmt.Errorf("open spare %s: %w", name, err)
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close()
			return nil, "", 0, fmt.Errorf("stat spare %s: %w", name, err)
		}
		w.counters.recycled.Add(1)
		return file, name, info.Size(), nil
	}
	name = fs.PathJoin(w.options.Dir, spareName(number))
	if file, err = fs.OpenReadWrite(name); err != nil {
		return nil, "", 0, fmt.Errorf("create %s: %w", name, err)
	}
	err = file.Preallocate(0, w.options.SegmentBytes)
	if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		_ = file.Close()
		return nil, "", 0, fmt.Errorf("reserve %d bytes for %s: %w", w.options.SegmentBytes, name, err)
	}
	w.counters.created.Add(1)
	return file, name, 0, nil
}

// retire turns a segment without live entries into a spare, or removes it if there are enough or its size does not fit. The
// caller syncs the directory before a spare is written: a power loss must not bring back the old name over new bytes.
func (w *WAL) retire(number uint64) error {
	fs, dir := w.options.FS, w.options.Dir
	name := fs.PathJoin(dir, segmentName(number))
	info, err := fs.Stat(name)
	if err != nil {
		return fmt.Errorf("stat %s: %w", name, err)
	}
	if len(w.spares) >= maxSpares || !w.fits(info.Size()) || slices.Contains(w.spares, number) {
		if err := fs.Remove(name); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
		return nil
	}
	if err := fs.Rename(name, fs.PathJoin(dir, spareName(number))); err != nil {
		return fmt.Errorf("make %s a spare: %w", name, err)
	}
	w.spares = append(w.spares, number)
	return nil
}

// fits reports whether a file of this size is worth keeping for reuse.
func (w *WAL) fits(size int64) bool {
	return size >= w.options.SegmentBytes/2 && size <= 2*w.options.SegmentBytes
}

// adopt keeps the spares of an earlier run that are useful, and removes the others.
func (w *WAL) adopt(spares []uint64) error {
	for _, number := range spares {
		name := w.options.FS.PathJoin(w.options.Dir, spareName(number))
		info, err := w.options.FS.Stat(name)
		if err != nil {
			return fmt.Errorf("stat spare %s: %w", name, err)
		}
		if len(w.spares) < maxSpares && w.fits(info.Size()) {
			w.spares = append(w.spares, number)
		} else if err := w.options.FS.Remove(name); err != nil {
			return fmt.Errorf("remove spare %s: %w", name, err)
		}
	}
	return nil
}

// discard removes spares.
func (w *WAL) discard(spares []uint64) error {
	for _, number := range spares {
		name := w.options.FS.PathJoin(w.options.Dir, spareName(number))
		if err := w.options.FS.Remove(name); err != nil {
			return fmt.Errorf("remove spare %s: %w", name, err)
		}
	}
	return nil
}

// count publishes the counters that other goroutines may read.
func (w *WAL) count() {
	var disk int64
	for i := range w.segments {
		disk += max(w.segments[i].size, w.options.SegmentBytes)
	}
	w.counters.segments.Store(int64(len(w.segments)))
	w.counters.spares.Store(int64(len(w.spares)))
	w.counters.diskBytes.Store(disk + int64(len(w.spares))*w.options.SegmentBytes)
}
