package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/storage/atrest"
)

// Dump prints every record of the log in dir, one line per item, and continues past damage as far as it can. It opens no file
// for writing, so it may read the log of a running member, whose last record may then be half written, and which may free
// segments, and write over them, before or while they are read. The error is one of reading or of w; damage is printed, and
// reported as ErrCorrupt at the end. keys open an encrypted log; nil: it is not encrypted. A segment that is freed while it is
// read is not called damaged: damage is printed once the segment is known to be there still.
func Dump(w io.Writer, fs env.FS, dir string, keys *atrest.Ring) error {
	l, err := list(fs, dir)
	if err != nil {
		return err
	}
	if len(l.segments) == 0 {
		return fmt.Errorf("%w: %s", ErrNoLog, dir)
	}
	d := dumper{out: w, fs: fs, dir: dir, keys: keys}
	run, stale := l.youngestRun()
	for _, number := range stale {
		d.printf("%s: before a gap, not part of the log\n", segmentName(number))
	}
	sealed := make([]int64, len(run)) // by the successor; zero for the youngest
	for i := 1; i < len(run); i++ {
		sealed[i-1] = d.sealedBy(run[i])
	}
	for i, number := range run {
		err := d.segment(number, sealed[i])
		gone := (err != nil || d.held != nil) && d.freed(number)
		if d.conclude(gone); gone {
			d.printf("%s: freed by its member before it was read in full\n", segmentName(number))
		} else if err != nil {
			return err
		}
	}
	for _, number := range l.spares {
		d.printf("%s: waits to be overwritten\n", spareName(number))
	}
	if d.err == nil && d.damaged {
		return fmt.Errorf("%w: see the listing", ErrCorrupt)
	}
	return d.err
}

// freed reports whether a segment, which was part of the log, is so no more: the log begins behind it by now.
func (d *dumper) freed(number uint64) bool {
	l, err := list(d.fs, d.dir)
	if err != nil || len(l.segments) == 0 {
		return false
	}
	run, _ := l.youngestRun()
	return run[0] > number
}

// harm says that what follows of the segment is damage. It is held back until it is known that the member has not freed the
// segment meanwhile: then it was written over, and nothing is damaged.
func (d *dumper) harm() {
	if d.held == nil {
		d.held = &bytes.Buffer{}
	}
}

// conclude prints what was held back, unless the segment is gone.
func (d *dumper) conclude(gone bool) {
	held := d.held
	if d.held = nil; held == nil || gone {
		return
	}
	d.damaged = true
	d.printf("%s", held.Bytes())
}

type dumper struct {
	out     io.Writer
	held    *bytes.Buffer // of a segment, from its first damage on
	fs      env.FS
	dir     string
	keys    *atrest.Ring
	damaged bool
	err     error // the first one of out
	pool    pool  // the records held so far in the segment that is printed
	gapped  bool  // a part of it could not be read, so pool may lack records
}

func (d *dumper) printf(format string, args ...any) {
	out := d.out
	if d.held != nil {
		out = d.held
	}
	if _, err := fmt.Fprintf(out, format, args...); err != nil && d.err == nil {
		d.err = err
	}
}

// sealedBy returns the length that segment number records of the one before it, or zero.
func (d *dumper) sealedBy(number uint64) int64 {
	w, err := openWindow(d.fs, d.dir, number)
	if err != nil {
		return 0
	}
	defer func() { _ = w.file.Close() }()
	h, err := w.header(d.keys)
	if err != nil {
		return 0
	}
	return h.sealed
}

func (d *dumper) segment(number uint64, sealed int64) error {
	w, err := openWindow(d.fs, d.dir, number)
	if err != nil {
		return err
	}
	defer func() { _ = w.file.Close() }()
	h, err := w.header(d.keys)
	switch {
	case errors.Is(err, errDamagedHeader), errors.Is(err, level.ErrLater):
		d.harm()
		d.printf("%s: %v\n", segmentName(number), err)
		return nil
	case err != nil:
		return fmt.Errorf("wal: %s: %w", w.name, err)
	}
	if h.number != number {
		d.harm()
	}
	if h.key != nil {
		d.printf("%s: encrypted, key %v\n", segmentName(number), h.key.id)
	}
	d.printf("%s: cluster %v member %v storage %v segment %d, file of %d bytes, the segment before has %d\n",
		segmentName(number), h.identity.Cluster, h.identity.Member, h.identity.Storage, h.number, w.size, h.sealed)
	if h.number != number {
		d.printf("  damaged: the file holds another segment\n")
	}
	return d.records(w, &h, sealed)
}

func (d *dumper) records(w *window, head *header, sealed int64) error {
	seed, offset := head.seed(), head.length()
	d.pool, d.gapped = pool{}, false
	for sealed == 0 || offset < sealed {
		h, items, ok, err := w.record(seed, offset)
		if errors.Is(err, ErrCorrupt) {
			d.harm()
			d.printf("%10d %v\n", offset, err)
			offset, d.gapped = offset+recordSpan(int64(h.length)), true
			continue
		}
		if err != nil {
			return err
		}
		if ok {
			d.record(offset, h, items)
			offset += recordSpan(int64(h.length))
			continue
		}
		next, err := d.gap(w, seed, offset, sealed)
		if err != nil || next == 0 {
			return err
		}
		offset, d.gapped = next, true
	}
	d.printf("%10d end, sealed\n", offset)
	return nil
}

// gap prints a gap without records, and returns the offset of the next whole record, or zero at the end of the log.
func (d *dumper) gap(w *window, seed uint32, offset, sealed int64) (next int64, err error) {
	torn, proof := int64(0), false
	err = w.search(seed, offset, func(at int64, h recordHeader) bool {
		if at == offset {
			torn = recordSpan(int64(h.length))
			return true
		}
		next, proof = at, int64(h.durable) > offset
		return false
	})
	switch {
	case err != nil:
		return 0, err
	case proof || sealed > 0:
		d.harm()
		d.printf("%10d damaged: no valid record, though one was durable here\n", offset)
	case next > 0 || torn > 0:
		d.printf("%10d end of the log, then traces of an unfinished append\n", offset)
	default:
		d.printf("%10d end of the log\n", offset)
	}
	return next, nil
}

func (d *dumper) record(offset int64, h recordHeader, held []byte) {
	items, packed, err := unpack(held)
	kind := ""
	if packed {
		kind = fmt.Sprintf(", packed, %d bytes of items", len(items))
	}
	d.printf("%10d record of %d bytes, durable %d%s\n", offset, h.length, h.durable, kind)
	if err != nil {
		d.harm()
		d.printf("           %v\n", err)
		return
	}
	d.items(items)
}

func (d *dumper) items(items []byte) {
	var it item
	for len(items) > 0 {
		rest, err := decodeItem(&it, items)
		if err != nil {
			d.harm()
			d.printf("           %v, %d bytes not read\n", err, len(items))
			return
		}
		items = rest
		reason := d.follow(&it)
		d.printf("           %s\n", it.line())
		if reason != "" {
			d.unfilled(reason)
		}
	}
}

// unfilled prints why an entry by name has no payload. Its record may have been in a gap.
func (d *dumper) unfilled(reason string) {
	if d.gapped {
		d.printf("           %s, unless in what was not read\n", reason)
		return
	}
	d.harm()
	d.printf("           damaged: %s\n", reason)
}

// follow keeps the pool as a replay would, and finds the payload of an entry by name, or returns the reason why it cannot.
func (d *dumper) follow(it *item) (fault string) {
	switch it.kind {
	case itemCarried:
		d.pool = pool{}
	case itemRecord, itemForget:
		d.pool.take(&it.witness)
	case itemNamed:
		return d.pool.fill(&it.entry)
	}
	return ""
}

func (it *item) line() string {
	switch it.kind {
	case itemEntry:
		return entryLine(&it.entry)
	case itemNamed:
		return entryLine(&it.entry) + ", by name"
	case itemHard:
		return fmt.Sprintf("hard     term %d vote %v commit %d", it.hard.Term, it.hard.Vote, it.hard.Commit)
	case itemReset:
		return fmt.Sprintf("reset    after %v config %v", it.meta.Position, it.meta.ConfigID)
	case itemBase:
		return fmt.Sprintf("base     after %v config %v", it.meta.Position, it.meta.ConfigID)
	case itemRecord:
		return fmt.Sprintf("record   attempt %x, %d bytes", it.witness.Attempt, len(it.witness.Payload))
	case itemForget:
		return fmt.Sprintf("forget   attempt %x", it.witness.Attempt)
	case itemCarried:
		return fmt.Sprintf("carried  last entry %d", it.last)
	case itemBoots:
		return fmt.Sprintf("boots    %d", it.boots)
	case itemEpoch:
		return fmt.Sprintf("epoch    %v", it.epoch)
	case itemMark:
		return fmt.Sprintf("mark     %s", map[byte]string{markOpened: "opened", markClosed: "closed"}[it.why])
	}
	return "unknown"
}

func entryLine(e *consensus.Entry) string {
	line := fmt.Sprintf("entry    %v %v, %d bytes", e.Position(), e.Kind, len(e.Payload))
	if !e.Proposal.IsZero() {
		line += fmt.Sprintf(", proposal %v", e.Proposal)
	}
	if e.ExactRevision > 0 {
		line += fmt.Sprintf(", exact revision %d", e.ExactRevision)
	}
	return line
}
