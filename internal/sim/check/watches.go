package check

import (
	"bytes"

	"github.com/quorate/quorate/internal/kv"
)

// watches checks that a watcher sees every change of its range exactly once, in order, whole revisions at a time,
// across reconnects to other members.
type watches struct{ all []*Watch }

// Watch is a client's watch of a range, with the events that the client has seen.
type Watch struct {
	key, end []byte
	next     kv.Revision // all earlier revisions were seen
	name     string
	seen     uint64
	suite    *Suite
}

// NewWatch begins a check of a watch that asks for changes of [key, end) from a revision on.
func (s *Suite) NewWatch(name string, key, end []byte, from kv.Revision) *Watch {
	w := &Watch{key: key, end: end, next: from, name: name, suite: s}
	s.watches.all = append(s.watches.all, w)
	return w
}

// Next is the revision at which a client that reconnects resumes.
func (w *Watch) Next() kv.Revision { return w.next }

// Seen counts the events.
func (w *Watch) Seen() uint64 { return w.seen }

func (w *Watch) covers(key []byte) bool {
	if len(w.end) == 0 {
		return bytes.Equal(key, w.key)
	}
	return bytes.Compare(key, w.key) >= 0 && (bytes.Equal(w.end, []byte{0}) || bytes.Compare(key, w.end) < 0)
}

// Compacted records that the watch was cancelled because the history up to a revision is gone; it resumes after it.
func (w *Watch) Compacted(compacted kv.Revision) {
	if compacted < w.next {
		w.suite.report("watch", "%s was cancelled by compaction %d though it asked from %d on", w.name, compacted, w.next)
	}
	if compacted > w.suite.machine.model.Compacted {
		w.suite.report("watch", "%s was cancelled by compaction %d, the last was %d", w.name, compacted,
			w.suite.machine.model.Compacted)
	}
	w.next = max(w.next, compacted+1)
}

// Delivered records that events arrived.
func (w *Watch) Delivered(events []kv.Event) {
	for len(events) > 0 {
		revision := events[0].KV.ModRevision
		if revision > w.suite.machine.model.Revision {
			w.suite.report("watch", "%s saw revision %d, the newest is %d", w.name, revision, w.suite.machine.model.Revision)
			return
		}
		if revision < w.next {
			w.suite.report("watch", "%s saw revision %d again or too late, it is at %d", w.name, revision, w.next)
			return
		}
		if !w.skip(revision) {
			return
		}
		n := w.match(revision, events)
		if n == 0 {
			return
		}
		w.next, events, w.seen = revision+1, events[n:], w.seen+uint64(n)
	}
}

// Progress records a progress notification: the watch has all events up to a revision.
func (w *Watch) Progress(revision kv.Revision) {
	if revision > w.suite.machine.model.Revision {
		w.suite.report("watch", "%s was told of revision %d, the newest is %d", w.name, revision,
			w.suite.machine.model.Revision)
		return
	}
	if revision >= w.next && w.skip(revision+1) {
		w.next = revision + 1
	}
}

// skip checks that the range did not change from the watch's position up to a revision.
func (w *Watch) skip(to kv.Revision) bool {
	for r := max(w.next, 2); r < to; r++ {
		for _, e := range w.suite.machine.model.Events[r-2] {
			if w.covers(e.KV.Key) {
				w.suite.report("watch", "%s missed %q at revision %d", w.name, e.KV.Key, r)
				return false
			}
		}
	}
	return true
}

// match compares the first of events with all changes of one revision, and returns how many it took.
func (w *Watch) match(revision kv.Revision, events []kv.Event) int {
	n := 0
	for _, want := range w.suite.machine.model.Events[revision-2] {
		if !w.covers(want.KV.Key) {
			continue
		}
		if n >= len(events) || events[n].Kind != want.Kind || !sameEvent(&events[n].KV, &want.KV) {
			w.suite.report("watch", "%s saw revision %d in another form: event %d is not %q", w.name, revision, n, want.KV.Key)
			return 0
		}
		n++
	}
	if n == 0 || (n < len(events) && events[n].KV.ModRevision == revision) {
		w.suite.report("watch", "%s saw a change at revision %d that is not in its range", w.name, revision)
		return 0
	}
	return n
}

func sameEvent(a, b *kv.KeyValue) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) && a.ModRevision == b.ModRevision &&
		a.CreateRevision == b.CreateRevision && a.Version == b.Version
}

// finish checks that each watch has seen all events: the world calls it after every watcher had time to catch up.
func (w *watches) finish(s *Suite) {
	for _, watch := range w.all {
		if !watch.skip(s.machine.model.Revision + 1) {
			return
		}
	}
}

// HasSeen reports, without a violation, whether a watch has seen everything in its range up to a revision.
func (w *Watch) HasSeen(to kv.Revision) bool {
	for r := max(w.next, 2); r <= min(to, w.suite.machine.model.Revision); r++ {
		for _, e := range w.suite.machine.model.Events[r-2] {
			if w.covers(e.KV.Key) {
				return false
			}
		}
	}
	return true
}
