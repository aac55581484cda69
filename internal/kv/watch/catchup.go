package watch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/keyrange"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// A step of catch-up is for at most catchUpWatchers, reads at most maxCatchUpRevisions (etcd's bound for one response)
// and about catchUpBytes. How large events are is known only afterwards, so the number of revisions starts small and
// follows.
const (
	catchUpWatchers       = 2048
	firstCatchUpRevisions = 64
	maxCatchUpRevisions   = 1000
	catchUpBytes          = 2 << 20
	// A stream may take so much in a step even if its client has too much waiting elsewhere.
	leastCatchUpBytes = 64 << 10
)

// catchUp makes one step for the watchers of s that are behind, in turn: it cancels those that compaction overtook, puts
// those that have nothing left to read back in step, and reads one chunk for the others, once for all of them. It reports
// whether another step may have something to do. The caller of Next is the only caller.
func (s *Stream) catchUp() (more bool, err error) {
	h := s.hub
	h.storeMu.RLock()
	defer h.storeMu.RUnlock()
	if h.store == nil {
		return !s.await(func() bool { return true }), nil // Reset will signal
	}
	published := h.store.Revision()
	c := s.plan(h.store.CompactRevision())
	if len(c.watchers) > 0 {
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
		c.moved = s.finish(&c) || c.moved
	}
	if s.fruitless += c.looked; c.moved {
		s.fruitless = 0
	}
	// If nobody moves, the store is behind the hub, and Publish will signal.
	return !s.await(func() bool { return s.fruitless >= s.behind.Len() && h.store.Revision() == published }), nil
}

// await puts the stream among those that Publish and Reset wake, if idle says so. It reports false if there is more to do.
func (s *Stream) await(idle func() bool) bool {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if !idle() {
		return false
	}
	s.fruitless = 0
	if s.behind.Len() > 0 && !s.waits {
		s.waits = true
		h.waiting = append(h.waiting, s)
	}
	return true
}

// chunk is a step of catch-up: what to read for whom, and then what was read.
type chunk struct {
	watchers []*watcher
	from, to kv.Revision
	prev     bool // somebody wants what was before
	looked   int  // watchers
	moved    bool // some of them were cancelled, put in step, or got nearer

	events []kv.Event
	next   kv.Revision // the first revision that was not read
}

// read takes the events of the chunk from the store.
func (c *chunk) read(store *mvcc.Store, maxRevisions int) error {
	query := mvcc.EventQuery{
		From: c.from, To: c.to, Prev: c.prev, MaxRevisions: maxRevisions, MaxBytes: catchUpBytes,
	}
	var ranges keyrange.Set
	sorted := slices.Clone(c.watchers) // so that each range is put at the end
	slices.SortFunc(sorted, func(a, b *watcher) int { return strings.Compare(a.interest.start, b.interest.start) })
	for _, w := range sorted {
		ranges.Add(w.keyRange())
	}
	for _, r := range ranges.Ranges() {
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

// plan chooses the watchers of the next step, and puts them last in their list. If the history has their events, they are
// in the chunk already.
func (s *Stream) plan(compacted kv.Revision) chunk {
	h := s.hub
	c := chunk{from: kv.MaxRevision}
	var spans []span
	turns := -1
	h.inHolds(func() (looked int, more bool) {
		if turns < 0 {
			turns = min(s.behind.Len(), catchUpWatchers)
		}
		for ; looked < watchersPerHold && turns > 0 && s.behind.First() != nil; looked++ {
			turns--
			c.looked++
			s.turn(s.behind.First(), compacted, &c)
		}
		c.to = h.rev
		if turns > 0 && s.behind.First() != nil {
			return looked, true
		}
		s.lagging.Store(s.behind.Len() > 0)
		spans, c.next = h.history.since(c.from, catchUpBytes)
		return looked, false
	})
	for i := range spans {
		c.events = append(c.events, spans[i].events...)
	}
	return c
}

// turn takes the first watcher that is behind.
func (s *Stream) turn(w *watcher, compacted kv.Revision, c *chunk) {
	h := s.hub
	switch {
	case w.next < compacted:
		s.remove(w)
		s.enqueue(Response{WatchID: w.id, Canceled: true, Compact: compacted})
		c.moved = true
	case w.next > h.rev:
		w.listed.Remove()
		h.behind--
		h.step(w)
		c.moved = true
	default:
		w.listed.Remove()
		s.behind.PushBack(&w.listed, w)
		c.watchers = append(c.watchers, w)
		c.from = min(c.from, w.next)
		c.prev = c.prev || w.prevKV
	}
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

// finish hands a chunk to those of its watchers that are still there, until the stream has enough: the others keep their
// place for a later step. What each one gets is found without the lock. It reports whether somebody got nearer.
func (s *Stream) finish(c *chunk) (moved bool) {
	h := s.hub
	share := sharer{events: indexByKey(c.events), made: map[interestAt]*Batch{}, upTo: c.next - 1}
	budget := s.budget()
	for done := 0; done < len(c.watchers) && share.bytes < budget; {
		part := c.watchers[done:min(done+watchersPerHold, len(c.watchers))]
		batches := make([]*Batch, 0, len(part))
		for i := 0; i < len(part) && share.bytes < budget; i++ {
			batches = append(batches, share.batch(part[i]))
		}
		h.inHolds(func() (int, bool) {
			for i, batch := range batches {
				w := part[i]
				if w.removed || w.next >= c.next {
					continue
				}
				w.next, moved = c.next, true
				if batch != nil {
					s.enqueue(Response{WatchID: w.id, Revision: batch.Revision, Batch: batch, Fragment: w.fragment})
					w.heard = s.ticks
				}
			}
			return len(batches), false
		})
		done += len(batches)
	}
	return moved
}

// budget is how many bytes of events a step may put into the queue: what the stream and its client have left, but never
// nothing.
func (s *Stream) budget() int {
	limits := &s.hub.options
	bytes, _ := s.size()
	left := min(int64(limits.StreamBytes-bytes), limits.ClientBytes-s.account.waiting.Load())
	return int(max(left, min(leastCatchUpBytes, int64(limits.StreamBytes))))
}
