package watch

import (
	"container/heap"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/mvcc"
)

// Options bound the hub's memory. Zero means the default.
type Options struct {
	StreamResponses int   // bound of those that wait in one stream before its watchers fall behind
	StreamBytes     int   // bound of the responses that wait in one stream
	StreamAnswers   int   // bound of the answers to requests that wait in one stream before Accept waits
	ClientBytes     int64 // bound of the responses that wait in all streams of a client
	TotalBytes      int64 // bound of the responses that wait in all streams; zero: twice ClientBytes
	WatcherBytes    int64 // bound of all watchers; a client may have as many bytes as are free for others
	HistoryBytes    int   // of recent events, from which watchers that are a little behind catch up
	RevisionBytes   int   // of the events of one revision with their previous pairs; zero: ClientBytes
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
	setDefault(&o.TotalBytes, 2*o.ClientBytes)
	setDefault(&o.WatcherBytes, defaultWatcherBytes)
	setDefault(&o.HistoryBytes, defaultHistoryBytes)
	setDefault(&o.RevisionBytes, int(o.ClientBytes))
	return o
}

func setDefault[T int | int64](option *T, value T) {
	if *option <= 0 {
		*option = value
	}
}

// watchersPerHold bounds the watchers that are visited in one hold of Hub.mu, but for Publish, which visits all parties that
// its events concern.
const watchersPerHold = 512

// Hub connects the state machine to the streams of a member. It outlives the store: see Detach and Reset.
//
// Locks are taken in the order storeMu, line, mu, Stream.mu, overdrafts.mu.
type Hub struct {
	options Options

	// storeMu is held for reading while a stream reads from the store, so that Detach can wait for it.
	storeMu sync.RWMutex
	store   *mvcc.Store // nil while detached

	// line is taken before mu by all callers but the state machine, so that the state machine waits for at most one of them.
	line sync.Mutex

	mu            sync.Mutex
	rev           kv.Revision        // published last; never falls
	inStep        directory          // parties that get published events
	stepping      linked.List[party] // the same
	sleepers      sleepers           // streams with watchers that start after rev
	accounts      map[string]*account
	open          map[*Stream]struct{}
	watcherBytes  int64
	opened        uint64    // streams opened without a client's name, ever
	watchers      int       // of all streams
	behind        int       // of those
	waiting       []*Stream // with parties behind that have nothing to read until the store advances
	history       history
	touched       []*group     // reused by Publish
	waitingEvents atomic.Int64 // in the queues of all streams
	waitingBytes  atomic.Int64 // of all accounts
	overdrafts    overdrafts
	reads         chan struct{} // full while the allowed number of streams of all clients make a step of catch-up
	longest       int           // most watchers visited in one hold of mu, for tests
}

// NewHub returns a hub without a store; Reset gives it one.
func NewHub(options Options) *Hub {
	options = options.withDefaults()
	h := &Hub{
		options: options, inStep: newDirectory(), accounts: map[string]*account{}, open: map[*Stream]struct{}{},
		history: history{limitBytes: options.HistoryBytes}, reads: make(chan struct{}, 2*reads(options.TotalBytes)),
	}
	h.overdrafts.options = &h.options
	return h
}

// enter takes mu for callers other than the state machine, and exit releases it.
func (h *Hub) enter() {
	h.line.Lock()
	h.mu.Lock()
}

func (h *Hub) exit() {
	h.mu.Unlock()
	h.line.Unlock()
}

// inHolds calls step with mu held until it returns false, and releases mu in between: Publish, and so the state machine, waits
// for at most one step. step returns how many watchers it has visited.
func (h *Hub) inHolds(step func() (looked int, more bool)) {
	for more := true; more; {
		h.enter()
		var looked int
		looked, more = step()
		h.longest = max(h.longest, looked)
		h.exit()
	}
}

// Revision returns the last published revision.
func (h *Hub) Revision() kv.Revision {
	h.enter()
	defer h.exit()
	return h.rev
}

// Stats are the counts of a moment; Behind are the watchers that read from the history or the store.
type Stats struct {
	Streams, Watchers, Behind int
	WatcherBytes              int64
	WaitingBytes              int64 // of responses that wait in streams; a shared batch counts once for each client
	WaitingEvents             int64 // the same, counted for each watcher
	Overdrawn                 int64 // streams that wait until others of their client have sent a large revision
}

// Stats returns the counts of this moment.
func (h *Hub) Stats() Stats {
	h.enter()
	defer h.exit()
	s := Stats{Streams: len(h.open), Watchers: h.watchers, Behind: h.behind,
		WaitingEvents: h.waitingEvents.Load(), Overdrawn: h.overdrafts.queued.Load()}
	for _, a := range h.accounts {
		s.WatcherBytes += a.watchers
		s.WaitingBytes += a.waiting.Load()
	}
	return s
}

// Wanted reports whether a watcher would get the events that are published now. If not, the state machine need not collect
// events and calls Advance instead of Publish.
func (h *Hub) Wanted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stepping.Len() > 0
}

// Publish delivers the events of the revisions after the last published one up to rev, in order. The store must have published
// rev before. The events are shared from now on and must not be modified.
func (h *Hub) Publish(rev kv.Revision, events []kv.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeWaiting()
	if rev <= h.rev {
		return
	}
	before := h.rev
	h.rev = rev
	h.wakeSleepers()
	if h.stepping.Len() == 0 {
		h.history.clear()
		return
	}
	for len(events) > 0 && events[0].KV.ModRevision <= before { // repeated entries, in part
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

// deliver gives the matched events to every party of a group.
func (h *Hub) deliver(g *group, rev kv.Revision, events []kv.Event) {
	batch := newBatch(rev, g.hits.list(events), g.prevKV)
	g.hits = picked{}
	for i := len(g.parties) - 1; i >= 0; i-- { // backwards: a party that falls behind leaves its place to the last
		if p := g.parties[i]; !p.stream.offer(p, batch) {
			h.fallBehind(p, batch.Events[0].KV.ModRevision)
		}
	}
}

// Advance is Publish for a state machine that did not collect the events because Wanted returned false. Watchers that came in
// between read them from the store.
func (h *Hub) Advance(rev kv.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeWaiting()
	if rev > h.rev {
		h.skipTo(rev)
	}
}

// skipTo makes rev the last published revision, without events: every party in step falls behind. It is called when no party,
// or hardly any, is in step, and when a snapshot has replaced the store.
func (h *Hub) skipTo(rev kv.Revision) {
	before := h.rev
	h.rev = rev
	h.history.clear()
	h.wakeSleepers()
	for p := h.stepping.First(); p != nil; p = h.stepping.First() {
		h.fallBehind(p, before+1)
	}
}

// stand puts a party that is in no list in step, or behind if it has events to read. It merges a small one with another of the
// same standing.
func (h *Hub) stand(p *party) {
	s := p.stream
	at := standing{interest: p.interest, next: p.next}
	inStep := p.next > h.rev
	if inStep {
		at.next = 0
	}
	other := s.parties[at]
	if other != nil && p.live+other.live <= partyWatchers && min(p.live, other.live) <= watchersPerHold {
		if p.live <= other.live {
			if !inStep {
				h.behind += p.live
			}
			other.absorb(p)
			return
		}
		h.leave(other)
		p.absorb(other)
		other = nil
	}
	if other == nil || p.live < other.live {
		s.parties[at] = p
	}
	if inStep {
		h.inStep.add(p)
		h.stepping.PushBack(&p.listed, p)
		return
	}
	s.behind.PushBack(&p.listed, p)
	h.behind += p.live
	s.lagging.Store(true)
}

// leave takes a party out of all lists.
func (h *Hub) leave(p *party) {
	s := p.stream
	if at := p.standing(); s.parties[at] == p {
		delete(s.parties, at)
	}
	if p.listed.List() == &s.behind {
		h.behind -= p.live
	}
	if p.group != nil {
		h.inStep.remove(p)
	}
	p.listed.Remove()
}

// fallBehind moves a party from step to behind, where its stream reads for it from revision next on.
func (h *Hub) fallBehind(p *party, next kv.Revision) {
	h.leave(p)
	p.next = next
	h.stand(p)
	p.stream.signal()
}

// wakeSleepers wakes the streams that have a watcher whose start was published. Hub.mu is held.
func (h *Hub) wakeSleepers() {
	for len(h.sleepers) > 0 && h.sleepers[0].futures[0].start <= h.rev {
		s := heap.Pop(&h.sleepers).(*Stream)
		s.lagging.Store(true)
		s.signal()
	}
}

// wakeWaiting wakes the streams whose parties have waited for the store to advance: the log may be applied again to an older
// store, and those events were published before.
func (h *Hub) wakeWaiting() {
	for i, s := range h.waiting {
		s.waits = false
		s.signal()
		h.waiting[i] = nil
	}
	h.waiting = h.waiting[:0]
}

// Detach removes the store from the hub before it is closed, and waits for the streams that read it. Watchers stay; the
// responses that they have in memory are still sent.
func (h *Hub) Detach() {
	h.storeMu.Lock()
	defer h.storeMu.Unlock()
	h.store = nil
}

// Reset gives the hub a store: at the start, or after a snapshot replaced the old one. Watchers continue at their next
// revision, from the store if that is in its past (invariant 3).
func (h *Hub) Reset(store *mvcc.Store) {
	h.storeMu.Lock()
	defer h.storeMu.Unlock()
	h.enter()
	defer h.exit()
	h.store = store
	if rev := store.Revision(); rev > h.rev {
		h.skipTo(rev)
	}
	h.wakeWaiting()
}
