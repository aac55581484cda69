package watch

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/quorate/quorate/internal/base/keyrange"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// A step of catch-up is for at most catchUpParties, reads at most maxCatchUpRevisions (etcd's bound for one response) and about
// catchUpBytes. The size of events is known only after the read, so the number of revisions starts small and adapts.
const (
	catchUpParties        = 2048
	firstCatchUpRevisions = 64
	maxCatchUpRevisions   = 1000
	catchUpBytes          = 2 << 20
)

// catchUp makes one step for the parties of s that are behind, in turn. It cancels those that compaction overtook, puts those
// that have read everything in step, and reads one chunk for all others together. It reports whether another step may be
// needed. Only the caller of Next calls it.
func (s *Stream) catchUp() (more bool, err error) {
	h := s.hub
	if !s.enterReads() {
		return true, nil
	}
	defer s.leaveReads()
	h.storeMu.RLock()
	defer h.storeMu.RUnlock()
	if h.store == nil {
		return !s.await(func() bool { return true }), nil // Reset will signal
	}
	published := h.store.Revision()
	c := s.plan(h.store.CompactRevision())
	if len(c.parties) > 0 {
		if c.next == 0 {
			err := c.read(h.store, s.reader.revisions, h.options.RevisionBytes)
			if large := new(mvcc.LargeRevisionError); errors.As(err, &large) {
				if err = s.narrow(h.store, &c, large.Revision); errors.As(err, &large) {
					s.dismissAlone(c.parties[0])
					return true, nil
				}
			}
			if errors.Is(err, kv.ErrCompacted) {
				return true, nil // a compaction after the plan: the next plan cancels
			}
			if err != nil {
				return false, fmt.Errorf("watch: catch up: %w", err)
			}
			s.adapt(c.sizeBytes())
		}
		c.moved = s.finish(&c) || c.moved
	}
	s.reader.fruitless, s.reader.refused = s.reader.fruitless+c.looked, s.reader.refused+c.refused
	if c.moved {
		s.reader.fruitless, s.reader.refused = 0, 0
	}
	// If no party moved on, the store is behind the hub, and Publish will signal.
	return !s.await(func() bool { return s.reader.fruitless >= s.behind.Len() && h.store.Revision() == published }), nil
}

// enterReads waits until the stream may read. A stream that reads never waits for a client. It returns false if the stream was
// stopped.
func (s *Stream) enterReads() bool {
	select {
	case s.account.reads <- struct{}{}:
	case <-s.stopped:
		return false
	}
	select {
	case s.hub.reads <- struct{}{}:
	case <-s.stopped:
		<-s.account.reads
		return false
	}
	if s.closed.Load() { // both were ready
		s.leaveReads()
		return false
	}
	return true
}

func (s *Stream) leaveReads() {
	<-s.hub.reads
	<-s.account.reads
}

// await adds the stream to those that Publish and Reset wake, if idle returns true. It returns false if there is more to do.
func (s *Stream) await(idle func() bool) bool {
	h := s.hub
	h.enter()
	defer h.exit()
	if !idle() {
		return false
	}
	refused := s.reader.refused > 0 && s.reader.refused >= s.reader.fruitless // all wait for an overdraft, which wakes s
	s.reader.fruitless, s.reader.refused = 0, 0
	if (s.behind.Len() > 0 || s.due()) && !s.waits && !refused {
		s.waits = true
		h.waiting = append(h.waiting, s)
	}
	return true
}

// chunk is a step of catch-up: the revisions to read and the parties to read them for, and then the events.
type chunk struct {
	parties  []*party
	from, to kv.Revision
	prev     bool // some party wants previous pairs
	looked   int  // parties
	refused  int  // parties among them that wait for an overdraft
	moved    bool // some of them were cancelled, put in step, or advanced

	lists [][]kv.Event // in order, each of whole revisions
	next  kv.Revision  // the first revision that was not read
}

func (c *chunk) sizeBytes() (total int) {
	for _, list := range c.lists {
		total += sizeOf(list)
	}
	return total
}

// read reads the events of the chunk from the store. With previous pairs a revision may have at most maxBytes.
func (c *chunk) read(store *mvcc.Store, maxRevisions, maxBytes int) error {
	query := mvcc.EventQuery{
		From: c.from, To: c.to, Prev: c.prev, MaxRevisions: maxRevisions, MaxBytes: min(catchUpBytes, maxBytes),
	}
	if c.prev {
		query.MaxRevisionBytes = maxBytes
	}
	query.NoPrevOfPuts, query.NoPrevOfDeletes = true, true
	for _, p := range c.parties {
		query.NoPrevOfPuts, query.NoPrevOfDeletes = query.NoPrevOfPuts && p.noPut, query.NoPrevOfDeletes && p.noDelete
	}
	var ranges keyrange.Set
	sorted := slices.Clone(c.parties) // so that Add always appends
	slices.SortFunc(sorted, func(a, b *party) int { return strings.Compare(a.start, b.start) })
	for _, p := range sorted {
		ranges.Add(p.keyRange())
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
		c.lists = append(c.lists, changes[i].Events)
	}
	return nil
}

// openEnd is etcd's encoding of a range without end.
var openEnd = []byte{0}

// plan chooses the parties of the next step, and moves them to the end of their list. If the history has their events, plan
// puts them into the chunk.
func (s *Stream) plan(compacted kv.Revision) chunk {
	h := s.hub
	c := chunk{from: kv.MaxRevision}
	var spans []span
	turns := -1
	h.inHolds(func() (looked int, more bool) {
		if looked = s.start(watchersPerHold); looked > 0 {
			c.moved = true
		}
		if s.due() {
			return looked, true
		}
		if turns < 0 {
			turns = min(s.behind.Len(), catchUpParties)
		}
		for looked < watchersPerHold && turns > 0 && s.behind.First() != nil {
			cost, done := s.turn(s.behind.First(), compacted, &c, watchersPerHold-looked)
			if looked += cost; done {
				turns--
				c.looked++
			}
			if len(c.parties) > 0 && s.alone(c.parties[0]) {
				turns = 0
			}
		}
		c.to = h.rev
		if turns > 0 && s.behind.First() != nil {
			return looked, true
		}
		s.lag()
		if !c.prev || c.from > compacted { // else the store leaves out the previous pairs that are compacted
			spans, c.next = h.history.since(c.from, catchUpBytes)
		}
		return looked, false
	})
	for i := range spans {
		c.lists = append(c.lists, spans[i].events)
	}
	return c
}

// turn handles the first party that is behind, and visits up to most of its watchers. It returns how many it has visited,
// and whether these were all.
func (s *Stream) turn(p *party, compacted kv.Revision, c *chunk, most int) (looked int, done bool) {
	h := s.hub
	switch {
	case p.next < compacted:
		c.moved = true
		return s.dismiss(p, Response{Compact: compacted}, most)
	case p.next > h.rev:
		h.leave(p)
		h.stand(p)
		c.moved = true
	default:
		p.listed.Remove()
		s.behind.PushBack(&p.listed, p)
		if p.refused = p.refused && s.overdraft.queued.Load(); p.refused {
			c.refused++
			break
		}
		if len(c.parties) > 0 && (s.alone(p) || s.alone(c.parties[0])) {
			break
		}
		c.parties = append(c.parties, p)
		c.from = min(c.from, p.next)
		c.prev = c.prev || p.prevKV
	}
	return 1, true
}

// dismiss cancels up to most watchers of a party.
func (s *Stream) dismiss(p *party, why Response, most int) (cancelled int, done bool) {
	for _, w := range p.members {
		if cancelled == most {
			break
		}
		if !w.gone {
			cancelled++
			s.remove(w)
			why.WatchID, why.Canceled = w.id, true
			s.enqueue(why)
		}
	}
	return cancelled, p.live == 0
}

// alone reports whether a party must be read for by itself: its next revision was too large to be read for many.
func (s *Stream) alone(p *party) bool { return p.prevKV && p.next == s.reader.large }

// narrow handles a revision that is too large for a chunk. If parties are still before it, they only advance up to it.
// Otherwise it is read for one party that wants previous pairs, or for all that want none. If it is too large for one party,
// narrow returns a LargeRevisionError, and the chunk has only that party.
func (s *Stream) narrow(store *mvcc.Store, c *chunk, large kv.Revision) error {
	if c.from < large {
		c.next = large
		return nil
	}
	if s.reader.large = large; len(c.parties) == 1 {
		return &mvcc.LargeRevisionError{Revision: large}
	}
	var some []*party
	for _, p := range c.parties {
		if p.next == large && (len(some) == 0 || !some[0].prevKV && !p.prevKV) {
			some = append(some, p)
		}
	}
	c.parties, c.prev = some, some[0].prevKV
	return c.read(store, s.reader.revisions, s.hub.options.RevisionBytes)
}

// dismissAlone cancels the watchers of a party whose next revision is too large.
func (s *Stream) dismissAlone(p *party) {
	s.hub.inHolds(func() (looked int, more bool) {
		if p.listed.List() != &s.behind {
			return 0, false
		}
		cancelled, done := s.dismiss(p, Response{Revision: s.hub.rev, Err: ErrLargeRevision}, watchersPerHold)
		return cancelled, !done
	})
}

// adapt sets the number of revisions of the next step by the bytes of the last.
func (s *Stream) adapt(bytes int) {
	switch {
	case bytes > catchUpBytes:
		s.reader.revisions = max(1, s.reader.revisions/4)
	case bytes < catchUpBytes/4:
		s.reader.revisions = min(maxCatchUpRevisions, s.reader.revisions*2)
	}
}

// finish gives a chunk to its parties until the budget of the step is used. The others stay behind for a later step, as do
// those that need an overdraft which was not granted. Batches are made without Hub.mu, which Publish needs. finish reports
// whether some party moved on.
func (s *Stream) finish(c *chunk) (moved bool) {
	h := s.hub
	budget := s.budget()
	share := newSharer(c, budget)
	for done := 0; done < len(c.parties) && share.bytes < budget; {
		part := c.parties[done:min(done+watchersPerHold, len(c.parties))]
		batches := make([]*Batch, 0, len(part))
		without := make([]bool, len(part)) // an overdraft
		for i := 0; i < len(part) && share.bytes < budget; i++ {
			given := share.bytes
			batch := share.batch(part[i])
			if share.bytes > budget && given > 0 {
				break
			}
			if share.bytes > budget && !h.overdrafts.draw(&s.overdraft, int64(share.bytes-given)) {
				share.bytes, without[i] = given, true
				c.refused++
			}
			batches = append(batches, batch)
		}
		h.inHolds(func() (int, bool) {
			for i, batch := range batches {
				p := part[i]
				if p.refused = without[i]; p.refused || p.listed.List() != &s.behind || p.next >= c.next {
					continue
				}
				if batch != nil {
					s.give(p, batch)
				}
				h.leave(p)
				p.next, moved = c.next, true
				h.stand(p)
			}
			return len(batches), false
		})
		done += len(batches)
	}
	return moved
}

// budget is how many bytes of events a step may put into the queue: those that the stream and its client have left, but never
// zero.
func (s *Stream) budget() int {
	limits := &s.hub.options
	bytes, _ := s.size()
	left := min(int64(limits.StreamBytes-bytes), s.account.free(limits))
	return int(max(left, int64(s.account.least(limits)), 1)) // with 1 the step needs an overdraft
}

// sharer makes the batches of a chunk. It matches events to parties as Publish does, by looking up for each event the groups
// that want it: the cost of a step is the sum of events and parties, not their product.
type sharer struct {
	wanted directory
	upTo   kv.Revision
	bytes  int // of all batches
}

// newSharer matches the events of a chunk to its parties, and cuts the chunk before the revision that exceeds budget. The first
// revision that some party wants is always kept. All parties are cut at one revision, so that they continue together.
func newSharer(c *chunk, budget int) *sharer {
	s := &sharer{wanted: newDirectory()}
	for _, p := range c.parties {
		s.wanted.of(p.interest)
	}
	bytes, before, last := 0, 0, kv.Revision(0) // before is the bytes of the revisions before the last
	for _, list := range c.lists {
		for i := range list {
			event := &list[i]
			if event.KV.ModRevision < c.from {
				continue // of a publication that begins earlier
			}
			if event.KV.ModRevision != last {
				last, before = event.KV.ModRevision, bytes
			}
			s.wanted.visit(event, func(g *group) {
				g.missed = append(g.missed, *event)
				bytes += sizeOf(list[i : i+1])
			})
			if bytes > budget && before > 0 {
				c.next = last
				s.upTo = c.next - 1
				s.trim()
				return s
			}
		}
	}
	s.upTo = c.next - 1
	return s
}

// trim drops the matches after the cut: batches share the lists of groups, and would keep them in memory.
func (s *sharer) trim() {
	for _, g := range s.wanted.groups {
		end := sort.Search(len(g.missed), func(i int) bool { return g.missed[i].KV.ModRevision > s.upTo })
		clear(g.missed[end:])
		g.missed = g.missed[:end:end]
	}
}

// batch returns the events of the chunk for a party, nil if there are none.
func (s *sharer) batch(p *party) *Batch {
	events := s.wanted.of(p.interest).missed
	seen := sort.Search(len(events), func(i int) bool { return events[i].KV.ModRevision >= p.next })
	if seen == len(events) {
		return nil
	}
	batch := newBatch(s.upTo, events[seen:], p.prevKV)
	s.bytes += responseBytes + batch.sizeBytes
	return batch
}
