package mvcc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/storage/engine"
)

// KeyRange is a range by etcd's rules for its end.
type KeyRange struct{ Key, End []byte }

// EventQuery asks for the changes of revisions From to To.
type EventQuery struct {
	From, To     kv.Revision // both included; To = 0 is the published revision
	Ranges       []KeyRange  // changes of these keys; none = all
	Prev         bool        // fill Event.Prev, except as the next two fields say
	MaxRevisions int         // with changes in the ranges, 0 = 1000
	MaxBytes     int         // of keys, values and EventOverhead for each event; the last revision may pass it; 0 = no limit
	// NoPrevOfPuts and NoPrevOfDeletes leave Event.Prev of that kind nil.
	NoPrevOfPuts, NoPrevOfDeletes bool
	// MaxRevisionBytes bounds one revision, counted as MaxBytes is; 0 = no limit. It must be at least MaxBytes.
	MaxRevisionBytes int
}

// Change has the events of one revision.
type Change struct {
	Revision kv.Revision
	Events   []kv.Event
}

// Bounds of EventsSince, and a size that it counts.
const (
	defaultMaxRevisions = 1000
	maxScannedChanges   = 100_000 // ends a query whose ranges match nothing
	EventOverhead       = 128     // bytes of an event beside its keys and values
)

// EventsSince returns changes in order, and the revision to continue from: To+1 if all are there. It returns kv.ErrCompacted if
// From is below the compact revision, and a LargeRevisionError if the first revision with changes is larger than
// MaxRevisionBytes; a From beyond the published revision gives no changes.
func (s *Store) EventsSince(q EventQuery) (changes []Change, next kv.Revision, err error) {
	if q.To <= 0 || q.To > s.Revision() {
		q.To = s.Revision()
	}
	if q.From > q.To {
		return nil, q.From, nil
	}
	if q.MaxRevisions <= 0 {
		q.MaxRevisions = defaultMaxRevisions
	}
	from := kv.Rev{Main: max(q.From, 0)}
	rows, err := s.engine.NewIter(changeBounds(from))
	if err != nil {
		return nil, q.From, fmt.Errorf("mvcc: read changes from revision %d: %w", q.From, err)
	}
	// The second iterator is younger, so it has every version that the first one names; the check follows both.
	versions, err := s.newIter([]byte{tableVersions}, []byte{tableVersions + 1}, q.From)
	if err != nil {
		if closeErr := rows.Close(); closeErr != nil {
			err = errors.Join(err, closeErr)
		}
		return nil, q.From, err
	}
	found, next, err := collectChanges(newChangeScan(rows, from, allOf(q.To)), &q, q.keys())
	if err == nil {
		changes, next, err = s.loadChanges(versions, &q, found, next)
	}
	if closeErr := errors.Join(rows.Close(), versions.Close()); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, q.From, fmt.Errorf("mvcc: read changes from revision %d: %w", q.From, err)
	}
	return changes, next, nil
}

// changeRef is one change: the engine key of its version.
type changeRef struct {
	rev   kv.Rev
	row   []byte // engine key in the version table
	event kv.Event
	bytes int // of event, 0 if it is not loaded
}

// collectChanges collects the changes that match, whole revisions only.
func collectChanges(scan changeScan, q *EventQuery, keys keyrange.Set) (found []changeRef, next kv.Revision, err error) {
	revisions, scanned := 0, 0
	var matched, latest kv.Revision
	size, first := 0, 0 // bytes of all keys that were found, and of those of the first revision
	for scan.next() {
		rev := scan.rev
		enough := revisions >= q.MaxRevisions || scanned >= maxScannedChanges || q.MaxBytes > 0 && size >= q.MaxBytes
		if enough && rev.Main != latest {
			return found, rev.Main, nil
		}
		latest = rev.Main
		scanned++
		if len(q.Ranges) > 0 && !keys.Contains(scan.change.user) {
			continue
		}
		if rev.Main != matched {
			matched = rev.Main
			revisions++
		}
		found = append(found, changeRef{rev: rev, row: appendVersionKey(nil, scan.change.user, rev)})
		if size += EventOverhead + len(scan.change.user); revisions == 1 {
			first = size
		}
		if q.MaxRevisionBytes > 0 && first > q.MaxRevisionBytes {
			return nil, 0, &LargeRevisionError{rev.Main}
		}
	}
	return found, q.To + 1, scan.err
}

// keys is the ranges as a set, which finds a key among very many of them.
func (q *EventQuery) keys() (set keyrange.Set) {
	for i := range q.Ranges {
		set.Add(keyrange.From(q.Ranges[i].Key, q.Ranges[i].End))
	}
	return set
}

// loadChanges reads the versions in the order of keys, which is fastest in the engine, and groups the events by revision.
func (s *Store) loadChanges(
	versions engine.Iterator, q *EventQuery, found []changeRef, next kv.Revision,
) ([]Change, kv.Revision, error) {
	byKey := make([]*changeRef, len(found))
	for i := range found {
		byKey[i] = &found[i]
	}
	slices.SortFunc(byKey, func(a, b *changeRef) int { return bytes.Compare(a.row, b.row) })
	compact := s.state.Load().compact
	kept := newKeptChanges(found, q, next)
	for _, ref := range byKey {
		if ref.rev.Main >= kept.next {
			continue
		}
		if err := loadEvent(versions, ref, q, compact); err != nil {
			return nil, 0, err
		}
		if err := kept.loaded(ref); err != nil {
			return nil, 0, err
		}
	}
	return kept.changes(), kept.next, nil
}

// keptChanges are the changes that a query can still return. Versions are read in the order of keys, so all revisions fill up
// at the same time. Once all revisions but the last have MaxBytes, the last is dropped, and its other versions are not read. So
// at most MaxBytes and one revision are in memory, however large the values are.
type keptChanges struct {
	refs  []changeRef // in the order of revisions
	query *EventQuery
	next  kv.Revision // the first revision that is not returned

	bytes     int // loaded, of all refs
	last      int // index of the first ref of the last revision
	lastBytes int // loaded, of that revision
}

func newKeptChanges(found []changeRef, query *EventQuery, next kv.Revision) *keptChanges {
	k := &keptChanges{refs: found, query: query, next: next}
	k.findLast()
	return k
}

// findLast finds the last revision.
func (k *keptChanges) findLast() {
	k.last, k.lastBytes = len(k.refs), 0
	for k.last > 0 && k.refs[k.last-1].rev.Main == k.refs[len(k.refs)-1].rev.Main {
		k.last--
		k.lastBytes += k.refs[k.last].bytes
	}
}

// loaded counts the event of one of refs, and drops the last revisions if those before them have enough bytes.
func (k *keptChanges) loaded(ref *changeRef) error {
	ref.bytes = eventBytes(&ref.event)
	k.bytes += ref.bytes
	if ref.rev.Main == k.refs[k.last].rev.Main {
		k.lastBytes += ref.bytes
	}
	for k.query.MaxBytes > 0 && k.bytes-k.lastBytes >= k.query.MaxBytes || k.tooLarge() && k.last > 0 {
		k.forgetLast()
	}
	if k.tooLarge() {
		return &LargeRevisionError{k.refs[0].rev.Main}
	}
	return nil
}

// tooLarge reports whether the last revision alone exceeds MaxRevisionBytes.
func (k *keptChanges) tooLarge() bool {
	return k.query.MaxRevisionBytes > 0 && k.lastBytes > k.query.MaxRevisionBytes
}

func (k *keptChanges) forgetLast() {
	k.next, k.bytes = k.refs[k.last].rev.Main, k.bytes-k.lastBytes
	for i := range k.refs[k.last:] {
		k.refs[k.last+i].event = kv.Event{}
	}
	k.refs = k.refs[:k.last]
	k.findLast()
}

// changes groups the kept changes by revision.
func (k *keptChanges) changes() (changes []Change) {
	for i := 0; i < len(k.refs); {
		end := i + 1
		for end < len(k.refs) && k.refs[end].rev.Main == k.refs[i].rev.Main {
			end++
		}
		change := Change{Revision: k.refs[i].rev.Main, Events: make([]kv.Event, 0, end-i)}
		for ; i < end; i++ {
			change.Events = append(change.Events, k.refs[i].event)
		}
		changes = append(changes, change)
	}
	return changes
}

func eventBytes(e *kv.Event) int {
	n := EventOverhead + len(e.KV.Key) + len(e.KV.Value)
	if e.Prev != nil {
		n += len(e.Prev.Key) + len(e.Prev.Value)
	}
	return n
}

// loadEvent reads one version and, if asked, the one before. The version before is what a read at the revision before would
// return, so it is absent if that revision is compacted, whether or not its row still exists.
func loadEvent(versions engine.Iterator, ref *changeRef, q *EventQuery, compact kv.Revision) error {
	if !versions.SeekPrefix(ref.row) || !bytes.Equal(versions.Key(), ref.row) {
		if err := versions.Error(); err != nil {
			return err
		}
		return fmt.Errorf("%w: version %x of a change is missing", ErrCorruptRow, ref.row)
	}
	prefix := ref.row[:len(ref.row)-suffixLen]
	user, ok := appendUser(nil, prefix)
	if !ok {
		return fmt.Errorf("%w: version key %x", ErrCorruptRow, ref.row)
	}
	current, err := loadVersion(user, versions.Value(), ref.rev.Main)
	if err != nil {
		return err
	}
	if current == nil {
		ref.event = kv.Event{Kind: kv.EventDelete, KV: kv.KeyValue{Key: user, ModRevision: ref.rev.Main}}
	} else {
		ref.event = kv.Event{Kind: kv.EventPut, KV: *current}
	}
	excepted := q.NoPrevOfDeletes
	if current != nil {
		excepted = q.NoPrevOfPuts || current.Version == 1
	}
	if !q.Prev || excepted || ref.rev.Main-1 < compact {
		return nil
	}
	for versions.Next() { // over versions that the same revision wrote before
		at, rev, ok := splitVersionKey(versions.Key())
		if !ok {
			return fmt.Errorf("%w: version key %x", ErrCorruptRow, versions.Key())
		}
		if !bytes.Equal(at, prefix) {
			return nil
		}
		if rev.Main < ref.rev.Main {
			ref.event.Prev, err = loadVersion(user, versions.Value(), rev.Main)
			return err
		}
	}
	return versions.Error()
}
