package watch

import (
	"bytes"
	"container/heap"
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/kv"
)

// Stream is the watchers of one client connection.
type Stream struct {
	hub     *Hub
	account *account

	// Guarded by hub.mu.
	watchers []*watcher // unordered: the last one takes the place of a removed one
	byID     map[int64]*watcher
	notified []*watcher          // watchers that asked for progress, unordered
	parties  map[standing]*party // parties that take more watchers
	behind   linked.List[party]  // the next party to read for comes first
	futures  futures
	asleep   int // place in hub.sleepers
	nextID   int64
	user     string // for Sample
	ticks    uint64 // of progress
	waits    bool   // in hub.waiting

	closed  atomic.Bool // by Stop
	left    atomic.Bool // by the caller of Next
	lagging atomic.Bool // a step of catch-up may be needed

	reader    reader
	overdraft overdraft
	stopped   chan struct{} // is closed once closed is set
	wake      chan struct{} // holds one signal: Next may have something to send
	room      chan struct{} // likewise: responses were sent, so that Accept may check again

	mu      sync.Mutex // guards what follows
	queue   []queued
	handed  []queued // by the last Next: being sent
	bytes   int      // of queue and handed
	answers int      // responses without events in both
	last    *Batch   // the last one in the queue: its bytes are counted once
	added   uint64   // to the queue, ever
}

// reader is the state that only the caller of Next uses.
type reader struct {
	revisions int         // of a step of catch-up; adapts to the size of events
	refused   int         // of the fruitless ones, those that wait for an overdraft
	fruitless int         // parties in a row for which a step of catch-up found no work
	large     kv.Revision // a revision whose events, with previous pairs, were too large to be read for many parties
	responses []Response  // what Next returned last: reused
}

// Open returns a new stream without watchers, with an account of its own. The caller must close it.
func (h *Hub) Open() *Stream { return h.OpenFor("") }

// OpenFor returns a new stream of a client. The memory of all streams of a client is bounded together.
func (h *Hub) OpenFor(client string) *Stream {
	h.enter()
	defer h.exit()
	s := &Stream{
		hub: h, account: h.openAccount(client), byID: map[int64]*watcher{}, ticks: 1,
		parties: map[standing]*party{}, asleep: nowhere,
		stopped: make(chan struct{}), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		reader: reader{revisions: firstCatchUpRevisions},
	}
	s.overdraft.account, s.overdraft.wake = s.account, s.wake
	h.open[s] = struct{}{}
	return s
}

// Stop makes Next return ErrClosed. It may be called concurrently with Next, unlike Close. The caller of Next calls Close then:
// until Close, the responses that Next returned are in memory and count.
func (s *Stream) Stop() {
	if s.closed.Swap(true) {
		return
	}
	close(s.stopped)
	s.dropQueue()
}

// Close removes all watchers without an answer and makes Next return ErrClosed. The responses of Next must not be used any
// more.
func (s *Stream) Close() {
	s.Stop()
	h := s.hub
	if s.left.Swap(true) {
		return
	}
	s.drop()
	h.overdrafts.end(&s.overdraft)
	h.inHolds(func() (removed int, more bool) {
		for ; removed < watchersPerHold; removed++ {
			last := len(s.watchers) - 1
			if last < 0 {
				delete(h.open, s)
				h.closeAccount(s.account)
				return removed, false
			}
			s.remove(s.watchers[last])
		}
		return removed, true
	})
}

// Accept waits until the stream has room for the answer to one more request. Its caller reads the client's next request only
// after that: requests of a client that does not read are not read either. Errors: ErrClosed, or the context's.
func (s *Stream) Accept(ctx context.Context) error {
	for {
		if s.closed.Load() {
			return ErrClosed
		}
		if _, answers := s.size(); answers < s.hub.options.StreamAnswers {
			return ctx.Err()
		}
		select {
		case <-s.room:
		case <-s.stopped:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Create adds a watcher and enqueues the answer, which precedes all its events. It returns the watcher's id, and
// false if it was refused.
func (s *Stream) Create(req Request) (int64, bool) {
	if len(req.Key) == 0 {
		req.Key = []byte{0}
	}
	w := &watcher{start: req.Start, fragment: req.Fragment, until: math.MaxUint64, notify: nowhere, future: nowhere}
	p := &party{interest: interestOf(&req), stream: s, next: req.Start}
	s.chooseID(&req)
	h := s.hub
	h.enter()
	defer h.exit()
	if s.closed.Load() {
		return NoID, false
	}
	if err := s.check(&req, p); err != nil {
		s.enqueue(Response{WatchID: NoID, Revision: h.rev, Created: true, Canceled: true, Err: err})
		return NoID, false
	}
	w.id, w.slot = req.ID, len(s.watchers)
	if req.Start == 0 {
		p.next = h.rev + 1
	}
	p.add(w)
	s.byID[w.id] = w
	s.watchers = append(s.watchers, w)
	h.watchers++
	s.account.addWatcher(h, p.watcherBytes())
	if req.ProgressNotify {
		w.notify = len(s.notified)
		s.notified = append(s.notified, w)
	}
	if p.next <= h.rev+1 {
		h.stand(p)
	}
	if w.start > h.rev {
		heap.Push(&s.futures, w)
		h.sleep(s)
	}
	// The signal comes last: the goroutine that takes the answer must find the watcher behind, for no other signal will come.
	s.enqueue(Response{WatchID: w.id, Revision: h.rev, Created: true})
	return w.id, true
}

// chooseID steps over the ids that the client chose itself, some at a time.
func (s *Stream) chooseID(req *Request) {
	if req.ID != 0 {
		return
	}
	s.hub.inHolds(func() (int, bool) {
		for n := range watchersPerHold {
			if s.byID[s.nextID] == nil {
				return n, false
			}
			s.nextID++
		}
		return watchersPerHold, true
	})
}

// check refuses a request, or gives it an id. hub.mu is held.
func (s *Stream) check(req *Request, p *party) error {
	openEnd := len(req.End) == 1 && req.End[0] == 0
	switch {
	case req.Start < 0:
		return kv.ErrCompacted
	case len(req.End) > 0 && !openEnd && bytes.Compare(req.Key, req.End) >= 0:
		return ErrEmptyRange
	case req.ID != 0 && s.byID[req.ID] != nil:
		return ErrDuplicateID
	case !s.account.hasRoomFor(s.hub, p.watcherBytes()):
		return ErrTooManyWatchers
	}
	if req.ID == 0 {
		req.ID = s.nextID
		s.nextID++
	}
	return nil
}

// Reject enqueues the answer to a creation that the caller refuses, for example because of permissions.
func (s *Stream) Reject(err error) {
	s.hub.enter()
	defer s.hub.exit()
	s.enqueue(Response{WatchID: NoID, Revision: s.hub.rev, Created: true, Canceled: true, Err: err})
}

// Cancel removes a watcher and enqueues the answer. For an unknown id it does nothing and returns false.
func (s *Stream) Cancel(id int64) bool {
	s.hub.enter()
	defer s.hub.exit()
	w := s.byID[id]
	if w == nil {
		return false
	}
	s.remove(w)
	s.enqueue(Response{WatchID: id, Revision: s.hub.rev, Canceled: true})
	return true
}

// remove takes a watcher out of everything but the queue. hub.mu is held.
func (s *Stream) remove(w *watcher) {
	h, p := s.hub, w.party
	s.mu.Lock()
	w.until = s.added
	s.mu.Unlock()
	if p.listed.List() == &s.behind {
		h.behind--
	}
	if p.remove(w); p.live == 0 {
		h.leave(p)
	}
	h.watchers--
	last := len(s.watchers) - 1
	s.watchers[w.slot] = s.watchers[last]
	s.watchers[w.slot].slot = w.slot
	s.watchers[last] = nil
	s.watchers = s.watchers[:last]
	if w.notify != nowhere {
		last := len(s.notified) - 1
		s.notified[w.notify] = s.notified[last]
		s.notified[w.notify].notify = w.notify
		s.notified[last] = nil
		s.notified = s.notified[:last]
	}
	if w.future != nowhere {
		heap.Remove(&s.futures, w.future)
		h.sleep(s)
	}
	delete(s.byID, w.id)
	s.account.addWatcher(h, -p.watcherBytes())
	s.lag()
}

// lag notes whether a step of catch-up may be needed. hub.mu is held.
func (s *Stream) lag() { s.lagging.Store(s.behind.Len() > 0 || s.due()) }

// RequestProgress enqueues a progress response for the whole stream if all its watchers are in step and have started;
// otherwise it does nothing, as etcd.
func (s *Stream) RequestProgress() {
	s.hub.inHolds(func() (started int, more bool) {
		if started = s.start(watchersPerHold); s.due() {
			return started, true
		}
		if len(s.watchers) > 0 && s.behind.Len() == 0 && len(s.futures) == 0 {
			s.enqueue(Response{WatchID: NoID, Revision: s.hub.rev})
		}
		return started, false
	})
}

// Tick is called once per progress interval: each watcher that asked for progress and is in step gets a progress response,
// unless it or others of its party had events since the last Tick, or the client has left many unread.
func (s *Stream) Tick() {
	h := s.hub
	at := -1
	h.inHolds(func() (looked int, more bool) {
		if at < 0 {
			at = len(s.notified)
		}
		at = min(at, len(s.notified)) // the last one took the place of a removed watcher
		for ; looked < watchersPerHold; looked++ {
			if _, answers := s.size(); at == 0 || answers >= h.options.StreamAnswers {
				s.ticks++
				return looked, false
			}
			at--
			w := s.notified[at]
			if p := w.party; w.heard != s.ticks && p.heard != s.ticks && p.group != nil && h.rev >= w.start {
				w.heard = s.ticks
				s.enqueue(Response{WatchID: w.id, Revision: h.rev})
			}
		}
		return looked, true
	})
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Next waits until there is something to send and returns some of it, in order; if the context is done it does not wait, but
// still returns responses that are ready. The responses that it returned before count as sent, and are overwritten. Each call
// makes one step for the watchers that are behind, unless enough waits. Errors: ErrClosed after Close, the context's, or an
// operating error of the store.
func (s *Stream) Next(ctx context.Context) ([]Response, error) {
	for {
		if s.closed.Load() {
			s.drop()
			return nil, ErrClosed
		}
		more := false
		bytes, _ := s.size()
		if s.lagging.Load() && bytes < s.hub.options.StreamBytes {
			var err error
			if more, err = s.catchUp(); err != nil {
				return nil, err
			}
			bytes, _ = s.size()
		}
		full := bytes >= s.hub.options.StreamBytes // take makes room, and may be the only signal
		s.hub.overdrafts.settle(&s.overdraft, bytes)
		if responses := s.take(); len(responses) > 0 {
			return responses, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if more || full {
			continue
		}
		select {
		case <-s.wake:
		case <-s.stopped:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Lagging reports whether some watcher is behind.
func (s *Stream) Lagging() bool { return s.lagging.Load() }
