package watch

import (
	"sync"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Options bound what the hub keeps in memory. Zero means the default.
type Options struct {
	StreamResponses int // that wait in one stream before its watchers fall behind
	StreamBytes     int // of events that wait in one stream; they may be shared with other streams
	HistoryBytes    int // of recent events, from which watchers that are a little behind catch up
}

const (
	defaultStreamResponses = 512
	defaultStreamBytes     = 4 << 20
	defaultHistoryBytes    = 8 << 20
)

func (o Options) withDefaults() Options {
	if o.StreamResponses <= 0 {
		o.StreamResponses = defaultStreamResponses
	}
	if o.StreamBytes <= 0 {
		o.StreamBytes = defaultStreamBytes
	}
	if o.HistoryBytes <= 0 {
		o.HistoryBytes = defaultHistoryBytes
	}
	return o
}

// Hub connects the state machine to the streams of a member. It outlives the store: see Detach and Reset.
//
// Locks are taken in the order storeMu, mu, Stream.mu.
type Hub struct {
	options Options

	// storeMu is held for reading while a watcher reads from the store, so that Detach can wait for it.
	storeMu sync.RWMutex
	store   *mvcc.Store // nil while detached

	mu      sync.Mutex
	rev     kv.Revision // published last; never falls
	inStep  directory   // watchers that get what is published
	streams []*Stream
	history history
	touched []*group // reused by Publish
}

// NewHub returns a hub without a store; Reset gives it one.
func NewHub(options Options) *Hub {
	options = options.withDefaults()
	return &Hub{options: options, inStep: newDirectory(), history: history{limitBytes: options.HistoryBytes}}
}

// Revision returns the last published revision.
func (h *Hub) Revision() kv.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rev
}

// Stats counts watchers; Behind are those that read from the history or the store.
type Stats struct{ Streams, Watchers, Behind int }

// Stats returns the counts of this moment.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{Streams: len(h.streams), Watchers: h.inStep.count}
	for _, stream := range h.streams {
		s.Behind += len(stream.behind)
	}
	s.Watchers += s.Behind
	return s
}

// Wanted reports whether anybody would get what is published now. If not, the state machine need not collect events and
// calls Advance instead of Publish.
func (h *Hub) Wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inStep.count > 0
}

// Publish hands out the events of the revisions after the last published one up to rev, in order. The store must have
// published rev before. The events are shared from now on: nobody modifies them.
func (h *Hub) Publish(rev kv.Revision, events []kv.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rev <= h.rev {
		h.replayed()
		return
	}
	before := h.rev
	h.rev = rev
	if h.inStep.count == 0 {
		h.history.clear()
		return
	}
	for len(events) > 0 && events[0].KV.ModRevision <= before { // the same, in part
		events = events[1:]
	}
	h.history.add(before+1, rev, events)
	touched := h.touched[:0]
	for i := range events {
		touched = h.inStep.match(events, i, touched)
	}
	for i, g := range touched {
		h.deliver(g, rev, events)
		touched[i] = nil
	}
	h.touched = touched[:0]
}

// deliver gives the events that were matched to every watcher of a group.
func (h *Hub) deliver(g *group, rev kv.Revision, events []kv.Event) {
	batch := newBatch(rev, g.hits.list(events), g.prevKV)
	g.hits = picked{}
	first := batch.Events[0].KV.ModRevision
	for i := len(g.watchers) - 1; i >= 0; i-- { // backwards: a watcher that falls behind leaves its slot to the last
		w := g.watchers[i]
		mine := batch
		if w.next > first { // it starts in the future, or the store was replaced by an older one
			late := w.pick(batch.Events, w.next)
			if len(late) == 0 {
				continue
			}
			mine = newBatch(rev, late, g.prevKV)
		}
		if w.stream.offer(w, mine) {
			w.next = rev + 1
			continue
		}
		w.next = max(w.next, first)
		h.fallBehind(w)
	}
}

// Advance is Publish for a state machine that did not collect the events because Wanted said no. Who came in between
// reads them from the store.
func (h *Hub) Advance(rev kv.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if rev <= h.rev {
		h.replayed()
		return
	}
	before := h.rev
	h.rev = rev
	h.history.clear()
	h.allFallBehind(before)
}

// replayed is called when the log is repeated over an older store: what comes was published before, but watchers that
// read from the store may have waited for it.
func (h *Hub) replayed() {
	for _, s := range h.streams {
		if len(s.behind) > 0 {
			s.signal()
		}
	}
}

// allFallBehind moves every watcher in step that may have to see something after before.
func (h *Hub) allFallBehind(before kv.Revision) {
	for _, s := range h.streams {
		for _, w := range s.watchers {
			if w.group == nil {
				continue
			}
			if w.next = max(w.next, before+1); w.next <= h.rev {
				h.fallBehind(w)
			}
		}
	}
}

// fallBehind moves a watcher out of step; its stream takes it from there.
func (h *Hub) fallBehind(w *watcher) {
	h.inStep.remove(w)
	w.stream.behind = append(w.stream.behind, w)
	w.stream.lagging.Store(true)
	w.stream.signal()
}

// Detach makes the hub forget the store before it is closed, and waits for those who read it. Watchers stay; what they
// have in memory still flows.
func (h *Hub) Detach() {
	h.storeMu.Lock()
	defer h.storeMu.Unlock()
	h.store = nil
}

// Reset gives the hub a store: at the start, or after a snapshot replaced the old one. Watchers go on at their next
// revision, from the store if that is in its past (law 3).
func (h *Hub) Reset(store *mvcc.Store) {
	h.storeMu.Lock()
	defer h.storeMu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store = store
	before := h.rev
	if rev := store.Revision(); rev > h.rev {
		h.rev = rev
		h.history.clear()
		h.allFallBehind(before)
	}
	for _, s := range h.streams {
		s.signal()
	}
}
