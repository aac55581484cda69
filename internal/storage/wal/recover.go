package wal

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
	"github.com/quorate/quorate/internal/storage/durable"
)

// Create makes an empty log, durably, in a directory without a log.
func Create(o Options, identity Identity) (*WAL, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := durable.MakeDir(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("wal: %w", explain(o.Dir, err))
	}
	l, err := list(o.FS, o.Dir)
	if err != nil {
		return nil, err
	}
	if len(l.segments) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrExists, o.Dir)
	}
	w := newWAL(o, identity)
	w.carried.epoch = identity.Epoch
	keep := w.adopt
	if o.Keys != nil {
		keep = w.discard // another log's, which may not have been encrypted
	}
	if err := keep(l.spares); err != nil {
		return nil, w.fail("create", err)
	}
	if err := w.begin(1, 0); err != nil {
		return nil, w.fail("create", err)
	}
	w.count()
	return w, nil
}

func newWAL(o Options, identity Identity) *WAL {
	w := &WAL{options: o, identity: identity}
	w.packer.least = cmp.Or(o.PackFrom, minPackedBytes)
	return w
}

// Open reads the log in the directory, cuts the rest of an unfinished append at its end, and makes all that it returns durable.
// It refuses a log that lost bytes which were durable once, or that Options.Check refuses, and then changes nothing.
func Open(o Options) (*WAL, Recovered, error) {
	if err := o.fill(); err != nil {
		return nil, Recovered{}, err
	}
	l, err := list(o.FS, o.Dir)
	if errors.Is(err, os.ErrNotExist) || (err == nil && len(l.segments) == 0) {
		return nil, Recovered{}, fmt.Errorf("%w: %s", ErrNoLog, o.Dir)
	}
	if err != nil {
		return nil, Recovered{}, err
	}
	run, stale := l.youngestRun()
	r := replay{options: o}
	defer r.close()
	if err := r.read(run); err != nil {
		return nil, Recovered{}, err
	}
	if o.Check != nil {
		found := r.recovered(&r.carried)
		if err := o.Check(&found); err != nil {
			return nil, Recovered{}, err
		}
	}
	w := newWAL(o, r.headers[0].identity)
	if err := w.resume(&r, stale, l.spares); err != nil {
		if w.file != nil {
			_ = w.file.Close()
		}
		return nil, Recovered{}, w.fail("open", err)
	}
	if cut := r.torn - r.end; cut > 0 {
		o.Logger.Warn("cut an unfinished append from the log", "file", segmentName(w.current().number),
			"offset", r.end, "bytes", cut)
	}
	return w, r.recovered(&w.carried), nil
}

// recovered returns the contents that were read.
func (r *replay) recovered(c *carried) Recovered {
	identity := r.headers[0].identity
	identity.Epoch = c.epoch
	return Recovered{
		Identity: identity, Hard: c.hard, Base: c.base, Entries: r.entries, Witness: c.pool.live(), Boots: c.boots,
		CutBytes: r.torn - r.end,
	}
}

// resume continues writing where the replay ended.
func (w *WAL) resume(r *replay, stale, spares []uint64) error {
	w.carried, w.segments = r.carried, r.segments
	last := r.windows[len(r.windows)-1]
	file, err := w.options.FS.OpenReadWrite(last.name)
	if err != nil {
		return fmt.Errorf("open %s: %w", last.name, err)
	}
	w.file, w.seed, w.box = file, r.headers[len(r.headers)-1].seed(), last.box
	w.first, w.end, w.filled = r.first, r.end, last.size
	// Bytes after the end must never be taken for a record once the space before them is written again.
	if r.torn > r.end {
		if _, err := file.WriteAt(make([]byte, r.torn-r.end), r.end); err != nil {
			return fmt.Errorf("clear the end of %s: %w", last.name, err)
		}
	}
	// The bytes that were read may come from the memory of the operating system and not be on the disk; after a failed sync the
	// kernel does not even mark them as unwritten. So all bytes that no later record proves durable are written again.
	again, err := last.at(r.durable, r.end-r.durable)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(append([]byte(nil), again...), r.durable); err != nil {
		return fmt.Errorf("rewrite the end of %s: %w", last.name, err)
	}
	if err := w.sync(); err != nil {
		return err
	}
	if err := syncDir(w.options.FS, w.options.Dir); err != nil {
		return err
	}
	if err := w.adopt(spares); err != nil {
		return err
	}
	for _, number := range stale {
		if err := w.retire(number); err != nil {
			return err
		}
	}
	if err := syncDir(w.options.FS, w.options.Dir); err != nil {
		return err
	}
	if err := w.mark(markOpened); err != nil {
		return err
	}
	w.count()
	return w.release()
}

// replay reads a run of segments, oldest first.
type replay struct {
	options  Options
	windows  []*window
	headers  []header
	segments []segment
	carried  carried
	entries  []consensus.Entry

	// Of the youngest segment, which is read last:
	first   int64 // end of its carried state
	end     int64 // end of its last whole record
	durable int64 // the length of it that is proven durable
	torn    int64 // end of the farthest trace of an unfinished append; at least end
}

func (r *replay) close() {
	for _, w := range r.windows {
		_ = w.file.Close()
	}
}

func (r *replay) read(run []uint64) error {
	for _, number := range run {
		w, err := openWindow(r.options.FS, r.options.Dir, number)
		if err != nil {
			return err
		}
		r.windows = append(r.windows, w)
		h, err := w.header(r.options.Keys)
		if err != nil {
			return headerFault(w, err)
		}
		if h.number != number {
			return &CorruptError{w.name, 48, fmt.Sprintf("the file holds segment %x", h.number)}
		}
		if len(r.headers) > 0 && h.identity != r.headers[0].identity {
			return &CorruptError{w.name, 16, "the segment belongs to another log than the one before"}
		}
		r.headers = append(r.headers, h)
		r.segments = append(r.segments, segment{number: number, size: w.size})
	}
	for i := range run {
		if err := r.segment(i); err != nil {
			return err
		}
	}
	return r.complete()
}

func headerFault(w *window, err error) error {
	switch {
	case errors.Is(err, errDamagedHeader):
		return &CorruptError{w.name, 0, err.Error()}
	case errors.Is(err, ErrNewerVersion):
		return fmt.Errorf("%w (%s)", err, w.name)
	case errors.Is(err, atrest.ErrPlain), errors.Is(err, atrest.ErrEncrypted), errors.Is(err, atrest.ErrNoKey):
		return fmt.Errorf("wal: %s: %w", w.name, err)
	}
	return err
}

// segment replays one segment up to its end.
func (r *replay) segment(i int) error {
	w, seed, begin := r.windows[i], r.headers[i].seed(), r.headers[i].length()
	limit, sealed := w.size, false
	if i+1 < len(r.windows) {
		limit, sealed = r.headers[i+1].sealed, true
	}
	r.end, r.durable = begin, begin
	for r.end < limit {
		h, items, ok, err := w.record(seed, r.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.record(i, items, r.end == begin); err != nil {
			var corrupt *CorruptError
			if errors.As(err, &corrupt) {
				corrupt.File, corrupt.Offset = w.name, r.end
				return corrupt
			}
			return fmt.Errorf("%w (%s at offset %d)", err, w.name, r.end)
		}
		r.durable = int64(h.durable)
		if r.end == begin {
			r.first = begin + recordSpan(int64(h.length))
			r.durable = r.first
		}
		r.end += recordSpan(int64(h.length))
	}
	r.torn = r.end
	r.segments[i].length, r.segments[i].last = r.end, r.carried.last
	switch {
	case r.end == begin:
		return &CorruptError{w.name, r.end, "the state that the segment begins with is damaged"}
	case sealed && r.end != limit:
		return &CorruptError{w.name, r.end, fmt.Sprintf("no valid record, and the segment is known to reach to %d", limit)}
	case sealed:
		return nil
	}
	return r.judgeEnd(w, seed)
}

// judgeEnd tells damage from an append that the power cut short. A record after the end that was written when the end was known
// to be durable proves damage. Without one, the last append wrote all bytes there, and its sync never returned: it was not
// acknowledged.
func (r *replay) judgeEnd(w *window, seed uint32) error {
	proof := int64(-1)
	err := w.search(seed, r.end, func(at int64, h recordHeader) bool {
		if int64(h.durable) > r.end {
			proof = at
			return false
		}
		r.torn = max(r.torn, min(at+recordSpan(int64(h.length)), w.size))
		return true
	})
	if err != nil {
		return err
	}
	if proof >= 0 {
		return &CorruptError{w.name, r.end, fmt.Sprintf("no valid record, but the one at %d was written after it", proof)}
	}
	return nil
}

// record applies the items of one record of segment i, of its first one if head is set.
func (r *replay) record(i int, items []byte, head bool) error {
	items, _, err := unpack(items)
	if err != nil {
		return damage(err)
	}
	if head != (len(items) > 0 && itemKind(items[0]) == itemCarried) {
		return fault("carried state out of place")
	}
	var it item
	for first := true; len(items) > 0; first = false {
		rest, err := decodeItem(&it, items)
		if err != nil {
			return damage(err)
		}
		if it.kind == itemCarried && !first {
			return fault("carried state amid other items")
		}
		items = rest
		if err := r.item(i, &it); err != nil {
			return err
		}
	}
	return nil
}

// damage is the error for items that do not decode.
func damage(err error) error {
	if errors.Is(err, level.ErrLater) {
		return fmt.Errorf("%w: %w", ErrNewerVersion, err)
	}
	return fault(err.Error())
}

// fault reports items that are malformed under a valid checksum; the caller adds the place.
func fault(reason string) error { return &CorruptError{Reason: reason} }

func (r *replay) item(i int, it *item) error {
	c := &r.carried
	switch it.kind {
	case itemCarried:
		if i > 0 && it.last != c.last {
			return fault(fmt.Sprintf("the segment follows entry %d, the one before ends at %d", it.last, c.last))
		}
		*c = carried{last: it.last}
	case itemHard:
		c.hard = it.hard
	case itemEntry:
		return r.entry(i, &it.entry)
	case itemNamed:
		if reason := c.pool.fill(&it.entry); reason != "" {
			return fault(reason)
		}
		return r.entry(i, &it.entry)
	case itemReset:
		c.base, c.last, r.entries = it.meta, it.meta.Position.Index, nil
		cutTo(r.segments[:i], 0)
	case itemBase:
		if it.meta.Position.Index > c.last {
			return fault(fmt.Sprintf("the log is compacted to %d and ends at %d", it.meta.Position.Index, c.last))
		}
		if it.meta.Position.Index < c.base.Position.Index {
			return fault(fmt.Sprintf("the log is compacted to %d, after %d", it.meta.Position.Index, c.base.Position.Index))
		}
		c.base = it.meta
		for len(r.entries) > 0 && r.entries[0].Index <= c.base.Position.Index {
			r.entries = r.entries[1:]
		}
	case itemRecord, itemForget:
		c.pool.take(&it.witness)
	case itemBoots:
		c.boots = it.boots
	case itemEpoch:
		c.epoch = it.epoch
	case itemMark:
	}
	return nil
}

func (r *replay) entry(i int, e *consensus.Entry) error {
	c := &r.carried
	if e.Index <= c.base.Position.Index || e.Index > c.last+1 {
		return fault(fmt.Sprintf("entry %d in a log that holds %d to %d", e.Index, c.base.Position.Index+1, c.last))
	}
	if e.Index <= c.last {
		cutTo(r.segments[:i], e.Index-1)
		if n := len(r.entries); n > 0 {
			keep := max(int(e.Index)-int(r.entries[0].Index), 0)
			r.entries = r.entries[:min(keep, n)]
		}
	}
	c.last = e.Index
	r.entries = append(r.entries, *e)
	return nil
}

// complete checks that no segment is missing between the beginning of the log and the oldest segment.
func (r *replay) complete() error {
	want, got := r.carried.base.Position.Index+1, r.carried.last+1
	if len(r.entries) > 0 {
		got = r.entries[0].Index
	}
	if got != want {
		return &CorruptError{r.windows[0].name, 0,
			fmt.Sprintf("entries %d to %d are missing, and so is the segment before this one", want, got-1)}
	}
	return nil
}
