package watch

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/internal/keyrange"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// A step of catch-up reads at most maxCatchUpRevisions (etcd's bound for one response) and about catchUpBytes. How
// large events are is known only afterwards, so the number of revisions starts small and follows.
const (
	firstCatchUpRevisions = 64
	maxCatchUpRevisions   = 1000
	catchUpBytes          = 2 << 20
)

// catchUp makes one step for the watchers of s that are behind: it cancels those that compaction overtook, puts those
// that have nothing left to read back in step, and reads one chunk for the others, once for all of them. It reports
// whether another step may have something to do. The caller of Next is the only caller.
func (s *Stream) catchUp() (more bool, err error) {
	h := s.hub
	h.storeMu.RLock()
	defer h.storeMu.RUnlock()
	if h.store == nil {
		return false, nil // Reset will signal
	}
	c := s.plan(h.store.CompactRevision())
	if len(c.watchers) == 0 {
		return false, nil
	}
	if c.next == 0 {
		err := c.read(h.store, s.catchUpRevisions)
		if errors.Is(err, kv.ErrCompacted) {
			return true, nil // since the plan was made: the next one cancels
		}
		if err != nil {
			return false, fmt.Errorf("watch: catch up: %w", err)
		}
		s.adapt(sizeOf(c.events))
	}
	s.finish(&c)
	return c.next > c.from, nil // if not, the store is behind the hub, and Publish will signal
}

// chunk is a step of catch-up: what to read for whom, and then what was read.
type chunk struct {
	watchers []*watcher
	from, to kv.Revision
	ranges   keyrange.Set
	prev     bool // somebody wants what was before

	events []kv.Event
	next   kv.Revision // the first revision that was not read
}

// read takes the events of the chunk from the store.
func (c *chunk) read(store *mvcc.Store, maxRevisions int) error {
	query := mvcc.EventQuery{
		From: c.from, To: c.to, Prev: c.prev, MaxRevisions: maxRevisions, MaxBytes: catchUpBytes,
	}
	for _, r := range c.ranges.Ranges() {
		if len(r.End) == 0 {
			r.End = openEnd
		}
		query.Ranges = append(query.Ranges, mvcc.KeyRange{Key: r.Start, End: r.End})
	}
	changes, next, err := store.EventsSince(query)
	if err != nil {
		return err
	}
	c.next = next
	for i := range changes {
		c.events = append(c.events, changes[i].Events...)
	}
	return nil
}

// openEnd is how etcd writes a range without end.
var openEnd = []byte{0}

// plan chooses the watchers of the next step. If the history has their events, they are in the chunk already.
func (s *Stream) plan(compacted kv.Revision) chunk {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c := chunk{from: kv.MaxRevision, to: h.rev}
	for _, w := range append([]*watcher(nil), s.behind...) {
		switch {
		case w.next < compacted:
			s.remove(w)
			s.enqueue(Response{WatchID: w.id, Canceled: true, Compact: compacted})
		case w.next > h.rev:
			s.behind = without(s.behind, w)
			h.inStep.add(w)
		default:
			c.watchers = append(c.watchers, w)
			c.from = min(c.from, w.next)
			c.ranges.Add(w.keyRange())
			c.prev = c.prev || w.prevKV
		}
	}
	s.lagging.Store(len(s.behind) > 0)
	if events, next, ok := h.history.since(c.from, catchUpBytes); ok {
		c.events, c.next = events, next
	}
	return c
}

// adapt sets the number of revisions of the next step by the bytes of the last.
func (s *Stream) adapt(bytes int) {
	switch {
	case bytes > catchUpBytes:
		s.catchUpRevisions = max(1, s.catchUpRevisions/4)
	case bytes < catchUpBytes/4:
		s.catchUpRevisions = min(maxCatchUpRevisions, s.catchUpRevisions*2)
	}
}

// finish hands a chunk to those of its watchers that are still there. Watchers of equal interest share a batch here too
// if they stand at the same revision, as they do after a burst that overran a stream.
func (s *Stream) finish(c *chunk) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	type place struct {
		interest interest
		next     kv.Revision
	}
	made := map[place]*Batch{}
	for _, w := range c.watchers {
		if w.removed || w.next >= c.next {
			continue
		}
		at := place{interest: w.interest, next: w.next}
		batch, ok := made[at]
		if !ok {
			if events := w.pick(c.events, w.next); len(events) > 0 {
				batch = newBatch(c.next-1, events, w.prevKV)
			}
			made[at] = batch
		}
		w.next = c.next
		if batch != nil {
			s.enqueue(Response{WatchID: w.id, Revision: batch.Revision, Batch: batch, Fragment: w.fragment})
			w.quiet = false
		}
	}
}
