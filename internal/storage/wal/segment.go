package wal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/durable"
)

const (
	segmentSuffix = ".wal"   // a live segment
	spareSuffix   = ".spare" // a file to be overwritten by a later segment, or one that is being made
)

// segment is the WAL's knowledge of one file.
type segment struct {
	number uint64
	length int64           // of the live bytes; final once there is a younger segment
	size   int64           // of the file
	last   consensus.Index // no live entry of this segment, or of an older one, is beyond it; grows with number
}

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

func spareName(number uint64) string { return fmt.Sprintf("%016x%s", number, spareSuffix) }

// listing is a log directory: the numbers of its segments and spares, sorted.
type listing struct {
	segments []uint64
	spares   []uint64
}

func list(fs env.FS, dir string) (listing, error) {
	names, err := fs.List(dir)
	if err != nil {
		return listing{}, fmt.Errorf("wal: list %s: %w", dir, err)
	}
	var l listing
	for _, name := range names {
		if n, ok := numberOf(name, segmentSuffix); ok {
			l.segments = append(l.segments, n)
		} else if n, ok := numberOf(name, spareSuffix); ok {
			l.spares = append(l.spares, n)
		}
	}
	slices.Sort(l.segments)
	slices.Sort(l.spares)
	return l, nil
}

func numberOf(name, suffix string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil
}

// youngestRun splits the segments into the youngest unbroken run of numbers and those before a gap. Segments are freed oldest
// first, but a power loss may undo some of the removals and keep others.
func (l *listing) youngestRun() (run, stale []uint64) {
	first := len(l.segments) - 1
	for first > 0 && l.segments[first-1]+1 == l.segments[first] {
		first--
	}
	return l.segments[first:], l.segments[:first]
}

// syncDir makes creations, renames and removals in dir durable.
func syncDir(fs env.FS, dir string) error {
	if err := durable.SyncDir(fs, dir); err != nil {
		return fmt.Errorf("wal: %w", explain(dir, err))
	}
	return nil
}

const windowBytes = 1 << 20

// window reads a file through large buffers. A buffer is never written again once it was returned, so values decoded from it
// may alias it for any time.
type window struct {
	file   env.File
	name   string
	size   int64
	buf    []byte
	offset int64       // of buf in the file
	box    *atrest.Box // of the segment; nil: its records are not sealed
}

func openWindow(fs env.FS, dir string, number uint64) (*window, error) {
	name := fs.PathJoin(dir, segmentName(number))
	file, err := fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("wal: open %s: %w", name, err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("wal: stat %s: %w", name, err)
	}
	return &window{file: file, name: name, size: info.Size()}, nil
}

// at returns length bytes from offset, or fewer if the file ends before.
func (w *window) at(offset, length int64) ([]byte, error) {
	length = min(length, w.size-offset)
	if length <= 0 {
		return nil, nil
	}
	if from := offset - w.offset; from < 0 || from+length > int64(len(w.buf)) {
		w.buf = make([]byte, min(max(length, windowBytes), w.size-offset))
		w.offset = offset
		if n, err := w.file.ReadAt(w.buf, offset); n < len(w.buf) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			w.buf = nil
			return nil, fmt.Errorf("wal: read %s at %d: %w", w.name, offset, err)
		}
	}
	from := offset - w.offset
	return w.buf[from : from+length : from+length], nil
}

// header reads the head of the segment, and finds the key of its records.
func (w *window) header(keys *atrest.Ring) (header, error) {
	src, err := w.at(0, sealedHeaderBytes)
	if err != nil {
		return header{}, err
	}
	h, err := decodeHeader(src)
	if err == nil {
		w.box, err = h.box(keys)
	}
	return h, err
}

// record reads the record at offset. ok is false if there is no whole record of this segment. A record that is whole and does
// not open is damage, also at the end of the log: a write that the power cut short does not have the right sums.
func (w *window) record(seed uint32, offset int64) (h recordHeader, items []byte, ok bool, err error) {
	src, err := w.at(offset, recordHeaderBytes)
	if err != nil || len(src) < recordHeaderBytes {
		return h, nil, false, err
	}
	h = decodeRecordHeader(src)
	if !h.stamped(seed, offset) || offset+recordHeaderBytes+int64(h.length) > w.size {
		return h, nil, false, nil
	}
	items, err = w.at(offset+recordHeaderBytes, int64(h.length))
	if err != nil {
		return h, nil, false, err
	}
	if crcOf(seed, items) != h.crc || w.box == nil {
		return h, items, crcOf(seed, items) == h.crc, nil
	}
	if items, err = w.box.Open(items, offset, h.durable); err != nil {
		return h, nil, false, &CorruptError{w.name, offset, "the record was not sealed with the key of this segment"}
	}
	return h, items, true, nil
}

// search searches heads of records of this segment from offset on, at every possible offset.
func (w *window) search(seed uint32, offset int64, found func(at int64, h recordHeader) bool) error {
	const stride = windowBytes / 2
	for from := align(offset); from+recordHeaderBytes <= w.size; from += stride {
		src, err := w.at(from, stride+recordHeaderBytes)
		if err != nil {
			return err
		}
		for i := 0; i < stride && i+recordHeaderBytes <= len(src); i += alignBytes {
			h := decodeRecordHeader(src[i:])
			if h.stamped(seed, from+int64(i)) && !found(from+int64(i), h) {
				return nil
			}
		}
	}
	return nil
}
