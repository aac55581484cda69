package mvcc

import (
	"bytes"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/census"
	"github.com/quorate/quorate/internal/storage/engine"
)

// Writer applies commands: many in one engine batch, each at its own revision. Its reads see its own changes.
//
//	w := store.Begin()
//	for each command { w.BeginCommand(); w.Put(...) ...; events := w.EndCommand() }
//	err := w.Commit()
//
// Errors of the engine are kept and returned by Commit: after one, the answers of a Writer are worthless, and no change of the
// batch becomes visible.
type Writer struct {
	store *Store
	batch engine.Batch
	it    engine.Iterator // on the engine at Begin; taken at the first need
	base  *state          // published at Begin

	last    kv.Revision // of the latest finished command that changed something
	main    kv.Revision // of this command, 0 until its first change
	exact   kv.Revision // the revision passed to BeginCommandAt, 0 = last+1
	sub     int64
	open    bool // between BeginCommand and EndCommand
	events  []kv.Event
	compact kv.Revision
	numbers numbers
	pack    pack   // of changes that are not in the batch yet
	by      []byte // the encoded author of the next changes; empty: none is kept

	pending overlay
	lives   []census.Change // keys that were created and deleted

	keyBuf, rowBuf []byte
	err            error
}

func (w *Writer) init(s *Store) {
	w.store = s
	w.batch = s.engine.NewBatch()
	w.pending.init()
}

func (w *Writer) begin(current *state) {
	w.base = current
	w.last, w.compact, w.numbers = current.revision, current.compact, current.numbers
	w.main, w.exact, w.sub, w.open = 0, 0, 0, false
	w.by = w.by[:0]
	w.pack.reset()
}

// Attribute says by whom the changes from now on are made; nil: that is not kept. Nobody is named before the first call.
func (w *Writer) Attribute(by *kv.Author) {
	if w.by = w.by[:0]; by != nil {
		w.by = appendAuthor(w.by, by)
	}
}

// Attributed returns by whom the next changes are made, encoded as the store keeps it; empty: that is not kept. It is valid
// until the next call of Attribute.
func (w *Writer) Attributed() []byte { return w.by }

// Err returns the engine error that Commit will return, nil if there is none so far.
func (w *Writer) Err() error { return w.err }

// Fail notes an operating error of code that writes other tables, if it is not nil: Commit returns it.
func (w *Writer) Fail(err error) { w.note(err) }

func (w *Writer) note(err error) {
	if err != nil && w.err == nil {
		w.err = err
	}
}

// Revision returns the latest revision assigned, with the changes of the open command.
func (w *Writer) Revision() kv.Revision {
	if w.main != 0 {
		return w.main
	}
	return w.last
}

// BatchBytes returns the length of the engine's batch: the memory until Commit is a multiple of that.
func (w *Writer) BatchBytes() int { return w.batch.Len() }

// CompactRevision returns the compact revision, compactions of this Writer included.
func (w *Writer) CompactRevision() kv.Revision { return w.compact }

// BeginCommand opens a command. Its changes share one revision, the next, which is taken at the first of them.
func (w *Writer) BeginCommand() { w.BeginCommandAt(w.last + 1) }

// BeginCommandAt opens a command whose changes get exactly this revision.
func (w *Writer) BeginCommandAt(rev kv.Revision) {
	if w.open {
		invariant.Broken("one command at a time at revision %d", w.last)
	}
	if rev <= w.last {
		invariant.Broken("revision %d of a command comes after %d", rev, w.last)
	}
	w.dropEvents()
	w.open, w.exact, w.main, w.sub = true, rev, 0, 0
}

// EndCommand closes the command and returns its changes in their order, each with the pair that it replaced, which the same
// command may have written: EventsSince gives the pair of the revision before. The list is valid until the next command; the
// pairs that the events point to are not changed.
func (w *Writer) EndCommand() []kv.Event {
	w.mustBeOpen()
	w.open = false
	if w.main != 0 {
		w.last, w.main = w.main, 0
	}
	return w.events
}

func (w *Writer) mustBeOpen() {
	if !w.open {
		invariant.Broken("a change at revision %d belongs to a command", w.last)
	}
}

// dropEvents drops the events of the last command. A list that a large command made long is not kept.
func (w *Writer) dropEvents() {
	const keep = 64
	if clear(w.events); cap(w.events) > keep {
		w.events = nil
	}
	w.events = w.events[:0]
}

// Put writes one key and returns it with the version before, nil if there was none.
func (w *Writer) Put(key, value []byte, lease kv.LeaseID) (kv.KeyValue, *kv.KeyValue) {
	put, before, _ := w.PutWithin(key, value, lease, nil)
	return put, before
}

// PutWithin is Put with the value of the version before, here and in the event, only if it fits account; whole reports that. A
// nil account takes it.
func (w *Writer) PutWithin(
	key, value []byte, lease kv.LeaseID, account kv.Account,
) (put kv.KeyValue, before *kv.KeyValue, whole bool) {
	old := w.replaced(key, account)
	rev := w.nextRev()
	buf := make([]byte, len(key)+len(value))
	n := copy(buf, key)
	copy(buf[n:], value)
	v := &pendingVersion{rev: rev, kv: kv.KeyValue{
		Key: buf[:n:n], Value: buf[n:], CreateRevision: rev.Main, ModRevision: rev.Main, Version: 1, Lease: lease,
	}}
	if before = old.pair; before != nil {
		v.kv.CreateRevision, v.kv.Version = before.CreateRevision, before.Version+1
	} else {
		w.numbers.keys++
		w.lives = append(w.lives, census.Change{Key: v.kv.Key, Revision: rev.Main, Born: true})
	}
	w.write(v, before, old.at)
	w.events = append(w.events, kv.Event{Kind: kv.EventPut, KV: v.kv, Prev: before, Bare: old.bare,
		PrevSum: old.sum, PrevSize: old.size})
	return v.kv, before, !old.bare
}

// DeleteRange deletes the keys of a range and returns them as they were, in order. They, and the previous pairs of the events,
// have values only if all of them fit account; whole reports that. A nil account takes none, except for the value of a single
// key.
func (w *Writer) DeleteRange(key, end []byte, account kv.Account) (were []kv.KeyValue, whole bool) {
	if isSingle(end) {
		return w.deleteSingle(key, account)
	}
	if isEmptyRange(key, end) {
		return nil, true
	}
	were, at, sums, err := w.collect(&kv.RangeOp{Key: key, End: end}, account)
	if err != nil {
		w.note(err)
		return nil, false
	}
	for i := range were {
		w.deleteOne(&were[i], at[i])
		if sums != nil {
			w.bareLast(&were[i], sums[i])
		}
	}
	return were, sums == nil
}

// deleteSingle is DeleteRange of one key.
func (w *Writer) deleteSingle(key []byte, account kv.Account) (were []kv.KeyValue, whole bool) {
	old := w.replaced(key, account)
	if old.pair == nil {
		return nil, true
	}
	// The cache may hold the pair. Its key and value share their memory, and the batch keeps the key.
	one := *old.pair
	one.Key = bytes.Clone(key)
	w.deleteOne(&one, old.at)
	if old.bare {
		w.bareLast(&one, bareValue{old.sum, old.size})
	}
	return []kv.KeyValue{one}, !old.bare
}

// replaced is the version that a change of one key replaces.
type replaced struct {
	pair *kv.KeyValue // nil: nothing
	at   position     // the length of the row may be unknown, but not of a bare pair
	bare bool         // only the hash of the value is known
	sum  uint64
	size uint32 // of the value, if it is bare
}

// replaced returns the version of key that the next change replaces. A value that does not fit account is hashed in place, and
// not copied: one command may put, or the end of a lease delete, very many keys of large values. A small value that this Writer
// or the cache has is returned anyway.
func (w *Writer) replaced(key []byte, account kv.Account) replaced {
	found, since, ok := w.cached(key)
	if !ok {
		return w.replacedRow(key, account)
	}
	if found == nil || account == nil || account.Take(PairBytes(found)) == nil || len(found.Value) < takeAtOnce {
		return replaced{pair: found, at: position{rev: since}}
	}
	old := pendingVersion{rev: since, kv: *found}
	one := *found
	one.Key, one.Value = bytes.Clone(key), nil
	return replaced{&one, old.position(), true, xxhash.Sum64(found.Value), uint32(len(found.Value))}
}

// replacedRow is replaced for a key that is only in the engine.
func (w *Writer) replacedRow(key []byte, account kv.Account) replaced {
	row, since := w.rowFromEngine(key, w.base.revision)
	if row == nil {
		return replaced{at: position{rev: since}}
	}
	rec, err := decodeRecord(row, since.Main)
	if err != nil || rec.tombstone {
		w.note(err)
		return replaced{at: position{rev: since}}
	}
	one := &kv.KeyValue{Key: bytes.Clone(key), CreateRevision: rec.create, ModRevision: since.Main, Version: rec.version,
		Lease: rec.lease}
	old := replaced{pair: one, at: position{since, len(row)}}
	if account != nil && account.Take(PairBytes(&kv.KeyValue{Key: key, Value: rec.value})) != nil {
		old.bare, old.sum, old.size = true, xxhash.Sum64(rec.value), uint32(len(rec.value))
		return old
	}
	one.Value = bytes.Clone(rec.value)
	return old
}

// collect reads a range with its values or, if they do not fit account, with their hashes instead. at are the positions of the
// versions.
func (w *Writer) collect(
	op *kv.RangeOp, account kv.Account,
) (found []kv.KeyValue, at []position, sums []bareValue, err error) {
	if account != nil {
		asked := &asked{Account: account}
		whole := newCollector(op, true, asked)
		whole.withAt = true
		result, err := whole.run(w.cursor(op.Key, op.End, w.Revision(), nil))
		if !asked.refused {
			return result.KVs, whole.at, nil, err
		}
	}
	bare := newCollector(op, true, nil)
	bare.withValue, bare.withSum, bare.withAt = false, true, true
	result, err := bare.run(w.cursor(op.Key, op.End, w.Revision(), nil))
	return result.KVs, bare.at, bare.sums, err
}

func (w *Writer) deleteOne(before *kv.KeyValue, at position) {
	rev := w.nextRev()
	v := &pendingVersion{rev: rev, tombstone: true, kv: kv.KeyValue{Key: before.Key, ModRevision: rev.Main}}
	w.numbers.keys--
	w.lives = append(w.lives, census.Change{Key: v.kv.Key, Revision: rev.Main})
	w.write(v, before, at)
	w.events = append(w.events, kv.Event{Kind: kv.EventDelete, KV: v.kv, Prev: before})
}

// bareLast notes that only the hash and the size of the value before the last change are kept.
func (w *Writer) bareLast(before *kv.KeyValue, was bareValue) {
	last := &w.events[len(w.events)-1]
	last.Prev, last.Bare, last.PrevSum, last.PrevSize = before, true, was.sum, was.size
}

// nextRev takes the position of the next change.
func (w *Writer) nextRev() kv.Rev {
	w.mustBeOpen()
	w.main = w.exact
	rev := kv.Rev{Main: w.main, Sub: w.sub}
	w.sub++
	return rev
}

// write puts a version into the batch, with its change, and into the overlay. It replaces before, which is stored at at; the
// length of its row may be unknown.
func (w *Writer) write(v *pendingVersion, before *kv.KeyValue, at position) {
	rec := v.record()
	replaces := change{kind: v.changeKind(), user: v.kv.Key, before: at, named: before != nil, by: w.by}
	if replaces.named && at.row == 0 {
		old := pendingVersion{rev: at.rev, kv: *before}
		replaces.before = old.position()
	}
	w.keyBuf = appendVersionKey(w.keyBuf[:0], v.kv.Key, v.rev)
	w.rowBuf = appendRecord(w.rowBuf[:0], &rec, v.rev.Main)
	w.batch.Set(w.keyBuf, w.rowBuf)
	w.numbers.versions++
	w.numbers.bytes += versionBytes(len(w.keyBuf), len(w.rowBuf), len(v.kv.Key))
	if !w.pack.takes(&replaces, v.rev) {
		w.pack.flush(w.batch)
	}
	w.pack.add(&replaces, v.rev)
	w.pending.add(v)
}

// versionBytes is the size of one change in both tables if it has rows of its own, without the name of the version before. A
// pack takes less, which is not counted, since the code that deletes the version does not know the rows of its change.
func versionBytes(key, row, user int) int64 { return int64(key + row + changeKeyLen + 1 + user) }

// Compact ends the history below rev: reads below are refused as soon as this batch is published. Store.CompactStep deletes the
// rows later.
func (w *Writer) Compact(rev kv.Revision) error {
	if rev <= w.compact {
		return kv.ErrCompacted
	}
	if rev > w.Revision() {
		return kv.ErrFutureRevision
	}
	w.compact = rev
	w.batch.Set(compactRow, appendNumbers(nil, int64(rev)))
	return nil
}

// Commit makes the batch visible: in the engine, in the cache, and then to all readers by publishing the revision. After an
// error the store must not be written to again.
func (w *Writer) Commit() error {
	invariant.True(!w.open, "no command is open at the commit of revision %d", w.last)
	defer w.store.begun.Store(false)
	w.closeIter()
	if w.err != nil {
		return w.err
	}
	w.pack.flush(w.batch)
	if w.numbers.versions != w.base.numbers.versions {
		n := &w.numbers
		w.batch.Set(writtenRow, appendNumbers(w.rowBuf[:0], int64(w.last), n.keys, n.versions, n.bytes))
	}
	if !w.batch.Empty() {
		if err := w.batch.Commit(); err != nil {
			w.err = fmt.Errorf("mvcc: commit up to revision %d: %w", w.last, err)
			return w.err
		}
		w.renewBatch()
	}
	w.dropEvents()
	w.pending.publish(w.store.cache)
	w.settleLives()
	w.store.state.Store(&state{revision: w.last, compact: w.compact, numbers: w.numbers})
	return nil
}

// settleLives passes created and deleted keys to the census, before a reader can ask for their revision.
func (w *Writer) settleLives() {
	w.store.census.Apply(w.lives, w.last, w.compact)
	const keep = 1 << 12
	if clear(w.lives); cap(w.lives) > keep {
		w.lives = nil
	}
	w.lives = w.lives[:0]
}

// Abandon releases the engine after an error from which the store does not recover, so that it can be closed.
func (w *Writer) Abandon() { w.closeIter() }

// renewBatch replaces a large batch, so that one bulk load does not hold its memory for ever.
func (w *Writer) renewBatch() {
	const keep = 1 << 20
	if w.batch.Len() <= keep {
		w.batch.Reset()
		return
	}
	w.note(w.batch.Close())
	w.batch = w.store.engine.NewBatch()
}

func (w *Writer) closeIter() {
	if w.it == nil {
		return
	}
	if err := w.it.Close(); err != nil {
		w.note(fmt.Errorf("mvcc: close an iterator: %w", err))
	}
	w.it = nil
}
