package watch

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/kv"
)

// Stream is the watchers of one client connection.
type Stream struct {
	hub *Hub

	// Guarded by hub.mu.
	slot     int        // in hub.streams
	watchers []*watcher // in the order of creation
	byID     map[int64]*watcher
	behind   []*watcher // a subset of watchers
	nextID   int64

	closed  atomic.Bool // these two are written under hub.mu, so that Next need not take it
	lagging atomic.Bool // behind is not empty

	catchUpRevisions int // adapts to the size of events; used by the caller of Next alone

	wake chan struct{} // holds one signal: there is something for Next

	mu    sync.Mutex // guards the queue alone
	queue []Response
	bytes int    // of events in the queue
	last  *Batch // the last one in the queue: its bytes are counted once
}

// watcher is one watch of a stream. It is in step if group is set, else in stream.behind. Guarded by hub.mu.
type watcher struct {
	interest
	stream   *Stream
	id       int64
	start    kv.Revision // as asked for
	next     kv.Revision // the first revision it has not seen; in step, everything up to hub.rev counts as seen too
	fragment bool
	progress bool // asked for progress
	quiet    bool // no events were enqueued since the last Tick
	removed  bool

	group *group
	slot  int // in group.watchers
}

// Open returns a new stream without watchers. It must be closed.
func (h *Hub) Open() *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &Stream{hub: h, slot: len(h.streams), byID: map[int64]*watcher{}, wake: make(chan struct{}, 1),
		catchUpRevisions: firstCatchUpRevisions}
	h.streams = append(h.streams, s)
	return s
}

// Close cancels all watchers without a word and makes Next return ErrClosed.
func (s *Stream) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.closed.Swap(true) {
		return
	}
	for _, w := range s.watchers {
		w.removed = true
		if w.group != nil {
			s.hub.inStep.remove(w)
		}
	}
	s.watchers, s.behind, s.byID = nil, nil, nil
	streams := s.hub.streams
	last := len(streams) - 1
	streams[s.slot], streams[last].slot = streams[last], s.slot
	streams[last] = nil
	s.hub.streams = streams[:last]
	s.mu.Lock()
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	s.signal()
}

// Create adds a watcher and enqueues the answer, which precedes all its events. It returns the watcher's id, and
// false if it was refused.
func (s *Stream) Create(req Request) (int64, bool) {
	if len(req.Key) == 0 {
		req.Key = []byte{0}
	}
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed.Load() {
		return NoID, false
	}
	if err := s.check(&req); err != nil {
		s.enqueue(Response{WatchID: NoID, Revision: h.rev, Created: true, Canceled: true, Err: err})
		return NoID, false
	}
	w := &watcher{
		interest: interestOf(&req), stream: s, id: req.ID, start: req.Start, next: req.Start,
		fragment: req.Fragment, progress: req.ProgressNotify, quiet: true,
	}
	if req.Start == 0 {
		w.next = h.rev + 1
	}
	s.byID[w.id] = w
	s.watchers = append(s.watchers, w)
	if w.next > h.rev {
		h.inStep.add(w)
	} else {
		s.behind = append(s.behind, w)
		s.lagging.Store(true)
	}
	// The signal comes last: who takes the answer must find that the watcher is behind, for nothing else will say so.
	s.enqueue(Response{WatchID: w.id, Revision: h.rev, Created: true})
	return w.id, true
}

// check refuses a request, or gives it an id.
func (s *Stream) check(req *Request) error {
	openEnd := len(req.End) == 1 && req.End[0] == 0
	switch {
	case req.Start < 0:
		return kv.ErrCompacted
	case len(req.End) > 0 && !openEnd && bytes.Compare(req.Key, req.End) >= 0:
		return ErrEmptyRange
	case req.ID != 0 && s.byID[req.ID] != nil:
		return ErrDuplicateID
	}
	if req.ID == 0 {
		for s.byID[s.nextID] != nil {
			s.nextID++
		}
		req.ID = s.nextID
		s.nextID++
	}
	return nil
}

// Reject enqueues the answer to a creation that the caller refuses, for example because of permissions.
func (s *Stream) Reject(err error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.enqueue(Response{WatchID: NoID, Revision: s.hub.rev, Created: true, Canceled: true, Err: err})
}

// Cancel removes a watcher and enqueues the answer. For an unknown id it does nothing and returns false.
func (s *Stream) Cancel(id int64) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	w := s.byID[id]
	if w == nil {
		return false
	}
	s.remove(w)
	s.enqueue(Response{WatchID: id, Revision: s.hub.rev, Canceled: true})
	return true
}

// remove takes a watcher out of everything. hub.mu is held.
func (s *Stream) remove(w *watcher) {
	w.removed = true
	if w.group != nil {
		s.hub.inStep.remove(w)
	} else {
		s.behind = without(s.behind, w)
	}
	s.watchers = without(s.watchers, w)
	delete(s.byID, w.id)
}

func without(list []*watcher, w *watcher) []*watcher {
	for i := range list {
		if list[i] == w {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = nil
			return list[:len(list)-1]
		}
	}
	return list
}

// RequestProgress enqueues a progress response for the whole stream if all its watchers are in step and have started;
// otherwise it does nothing, as etcd.
func (s *Stream) RequestProgress() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(s.watchers) == 0 {
		return
	}
	for _, w := range s.watchers {
		if w.group == nil || h.rev < w.start {
			return
		}
	}
	s.enqueue(Response{WatchID: NoID, Revision: h.rev})
}

// Tick is called once per progress interval: each watcher that asked for progress, is in step and had no events since
// the last Tick gets a progress response.
func (s *Stream) Tick() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range s.watchers {
		if w.progress && w.quiet && w.group != nil && h.rev >= w.start {
			s.enqueue(Response{WatchID: w.id, Revision: h.rev})
		}
		w.quiet = true
	}
}

// WantsTick reports whether some watcher asked for progress.
func (s *Stream) WantsTick() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, w := range s.watchers {
		if w.progress {
			return true
		}
	}
	return false
}

// enqueue adds a response whatever the bounds say: answers to the client's own requests.
func (s *Stream) enqueue(r Response) {
	s.mu.Lock()
	s.queue = append(s.queue, r)
	if r.Batch != nil && r.Batch != s.last {
		s.bytes += r.Batch.sizeBytes
		s.last = r.Batch
	}
	s.mu.Unlock()
	s.signal()
}

// offer adds events for a watcher in step, unless the stream is full. hub.mu is held.
func (s *Stream) offer(w *watcher, batch *Batch) bool {
	limits := &s.hub.options
	s.mu.Lock()
	cost := batch.sizeBytes
	if batch == s.last {
		cost = 0
	}
	full := len(s.queue) >= max(limits.StreamResponses, 4*len(s.watchers))
	if full || (s.bytes > 0 && s.bytes+cost > limits.StreamBytes) {
		s.mu.Unlock()
		return false
	}
	s.queue = append(s.queue, Response{WatchID: w.id, Revision: batch.Revision, Batch: batch, Fragment: w.fragment})
	s.bytes += cost
	s.last = batch
	first := len(s.queue) == 1
	s.mu.Unlock()
	w.quiet = false
	if first {
		s.signal()
	}
	return true
}

func (s *Stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take empties the queue.
func (s *Stream) take() []Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue, s.bytes, s.last = nil, 0, nil
	return queue
}

// Next waits until there is something to send and returns all of it, in order; with a context that is done it does not
// wait, but still returns what is there. Watchers that are behind make one step in each call. Errors: ErrClosed after
// Close, the context's, or an operating error of the store.
func (s *Stream) Next(ctx context.Context) ([]Response, error) {
	for {
		if s.closed.Load() {
			return nil, ErrClosed
		}
		more := false
		if s.lagging.Load() {
			var err error
			if more, err = s.catchUp(); err != nil {
				return nil, err
			}
		}
		if queue := s.take(); len(queue) > 0 {
			return queue, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if more {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Lagging reports whether some watcher is behind.
func (s *Stream) Lagging() bool { return s.lagging.Load() }
