package watch

import (
	"sort"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
	"github.com/quorate/quorate/internal/linked"
)

// Options bound what the hub keeps in memory. Zero means the default.
type Options struct {
	StreamResponses int   // that wait in one stream before its watchers fall behind
	StreamBytes     int   // of what waits in one stream
	StreamAnswers   int   // to requests of a client that wait in one stream before Accept waits
	ClientBytes     int64 // of what waits in all streams of a client
	WatcherBytes    int64 // of all watchers of a client
	HistoryBytes    int   // of recent events, from which watchers that are a little behind catch up
}

const (
	defaultStreamResponses = 512
	defaultStreamBytes     = 4 << 20
	defaultStreamAnswers   = 256
	defaultClientBytes     = 64 << 20
	defaultWatcherBytes    = 512 << 20
	defaultHistoryBytes    = 8 << 20
)

func (o Options) withDefaults() Options {
	setDefault(&o.StreamResponses, defaultStreamResponses)
	setDefault(&o.StreamBytes, defaultStreamBytes)
	setDefault(&o.StreamAnswers, defaultStreamAnswers)
	setDefault(&o.ClientBytes, defaultClientBytes)
	setDefault(&o.WatcherBytes, defaultWatcherBytes)
	setDefault(&o.HistoryBytes, defaultHistoryBytes)
	return o
}

func setDefault[T int | int64](option *T, value T) {
	if *option <= 0 {
		*option = value
	}
}

// watchersPerHold is how many watchers are looked at while Hub.mu is held once, but by Publish, which tells all whom its
// events concern.
const watchersPerHold = 512

// Hub connects the state machine to the streams of a member. It outlives the store: see Detach and Reset.
//
// Locks are taken in the order storeMu, mu, Stream.mu.
type Hub struct {
	options Options

	// storeMu is held for reading while a watcher reads from the store, so that Detach can wait for it.
	storeMu sync.RWMutex
	store   *mvcc.Store // nil while detached

	mu            sync.Mutex
	rev           kv.Revision          // published last; never falls
	inStep        directory            // watchers that get what is published
	stepping      linked.List[watcher] // the same
	accounts      map[string]*account
	streams       int
	opened        uint64 // streams without a name of their client, ever
	behind        int
	waiting       []*Stream // with watchers behind that have nothing to read until the store moves
	history       history
	touched       []*group     // reused by Publish
	waitingEvents atomic.Int64 // in the queues of all streams
	longest       int          // most watchers looked at in one hold of mu, for tests
}

// NewHub returns a hub without a store; Reset gives it one.
func NewHub(options Options) *Hub {
	options = options.withDefaults()
	return &Hub{
		options: options, inStep: newDirectory(), accounts: map[string]*account{},
		history: history{limitBytes: options.HistoryBytes},
	}
}

// inHolds calls step until it returns false, with mu, and releases mu in between: Publish, and so the state machine,
// waits for one step at most. step returns how many watchers it has looked at.
func (h *Hub) inHolds(step func() (looked int, more bool)) {
	for more := true; more; {
		h.mu.Lock()
		var looked int
		looked, more = step()
		h.longest = max(h.longest, looked)
		h.mu.Unlock()
	}
}

// Revision returns the last published revision.
func (h *Hub) Revision() kv.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rev
}

// Stats counts what is there now; Behind are the watchers that read from the history or the store.
type Stats struct {
	Streams, Watchers, Behind int
	WatcherBytes              int64
	WaitingBytes              int64 // of what waits in streams, shared batches once for each client
	WaitingEvents             int64 // the same, once for each watcher
}

// Stats returns the counts of this moment.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Stats{Streams: h.streams, Watchers: h.stepping.Len() + h.behind, Behind: h.behind,
		WaitingEvents: h.waitingEvents.Load()}
	for _, a := range h.accounts {
		s.WatcherBytes += a.watchers
		s.WaitingBytes += a.waiting.Load()
	}
	return s
}

// Wanted reports whether anybody would get what is published now. If not, the state machine need not collect events and
// calls Advance instead of Publish.
func (h *Hub) Wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stepping.Len() > 0
}

// Publish hands out the events of the revisions after the last published one up to rev, in order. The store must have
// published rev before. The events are shared from now on: nobody modifies them.
func (h *Hub) Publish(rev kv.Revision, events []kv.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeWaiting()
	if rev <= h.rev {
		return
	}
	before := h.rev
	h.rev = rev
	if h.stepping.Len() == 0 {
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
			late := sort.Search(len(batch.Events), func(i int) bool { return batch.Events[i].KV.ModRevision >= w.next })
			if late == len(batch.Events) {
				continue
			}
			mine = newBatch(rev, batch.Events[late:], g.prevKV)
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
	h.wakeWaiting()
	if rev <= h.rev {
		return
	}
	before := h.rev
	h.rev = rev
	h.history.clear()
	h.allFallBehind(before)
}

// allFallBehind moves every watcher in step that may have to see something after before. It is called where nobody is in
// step, or next to nobody, and when a snapshot has replaced the store.
func (h *Hub) allFallBehind(before kv.Revision) {
	for w := h.stepping.First(); w != nil; {
		after := w.listed.Next()
		if w.next = max(w.next, before+1); w.next <= h.rev {
			h.fallBehind(w)
		}
		w = after
	}
}

// step puts a watcher that is in no list in step.
func (h *Hub) step(w *watcher) {
	h.inStep.add(w)
	h.stepping.PushBack(&w.listed, w)
}

// leave puts a watcher that is in no list behind.
func (h *Hub) leave(w *watcher) {
	w.stream.behind.PushBack(&w.listed, w)
	h.behind++
	w.stream.lagging.Store(true)
}

// fallBehind moves a watcher out of step; its stream takes it from there.
func (h *Hub) fallBehind(w *watcher) {
	h.inStep.remove(w)
	w.listed.Remove()
	h.leave(w)
	w.stream.signal()
}

// wakeWaiting wakes the streams whose watchers have waited for the store to move: the log may be repeated over an older
// store, and what comes was published before.
func (h *Hub) wakeWaiting() {
	for i, s := range h.waiting {
		s.waits = false
		s.signal()
		h.waiting[i] = nil
	}
	h.waiting = h.waiting[:0]
}

// Detach makes the hub forget the store before it is closed, and waits for those who read it. Watchers stay; what they
// have in memory still flows.
func (h *Hub) Detach() {
	h.storeMu.Lock()
	defer h.storeMu.Unlock()
	h.store = nil
}

// Reset gives the hub a store: at the start, or after a snapshot replaced the old one. Watchers go on at their next
// revision, from the store if that is in its past (invariant 3).
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
	h.wakeWaiting()
}
