package watch

// What a call of Next hands out at most, but for a single response that is larger.
const (
	handedBytes     = 256 << 10
	handedResponses = 1024
)

// responseBytes stands for a response in a queue, without its batch.
const responseBytes = 128

// queued is a response that waits, and what it counts against its stream.
type queued struct {
	Response
	bytes int
}

// enqueue adds a response whatever the bounds say: an answer to a request, for which Accept has asked, or what one step
// of catch-up gives. hub.mu is held.
func (s *Stream) enqueue(r Response) {
	s.mu.Lock()
	s.add(r)
	s.mu.Unlock()
	s.signal()
}

// add counts and appends. hub.mu and mu are held.
func (s *Stream) add(r Response) {
	if s.closed.Load() {
		return
	}
	bytes := responseBytes
	if r.Batch == nil {
		s.answers++
	} else {
		s.account.charge(r.Batch)
		s.hub.waitingEvents.Add(int64(len(r.Batch.Events)))
		if r.Batch != s.last {
			bytes += r.Batch.sizeBytes
			s.last = r.Batch
		}
	}
	s.account.waiting.Add(responseBytes)
	s.bytes += bytes
	s.queue = append(s.queue, queued{Response: r, bytes: bytes})
}

// offer adds events for a watcher in step, unless the stream or its client is full. hub.mu is held.
func (s *Stream) offer(w *watcher, batch *Batch) bool {
	limits := &s.hub.options
	s.mu.Lock()
	cost := responseBytes
	if batch != s.last {
		cost += batch.sizeBytes
	}
	full := len(s.queue) >= max(limits.StreamResponses, 4*len(s.watchers)) || s.bytes+cost > limits.StreamBytes ||
		s.account.waiting.Load()+int64(cost) > limits.ClientBytes
	if full && s.bytes > 0 {
		s.mu.Unlock()
		return false
	}
	s.add(Response{WatchID: w.id, Revision: batch.Revision, Batch: batch, Fragment: w.fragment})
	first := len(s.queue) == 1
	s.mu.Unlock()
	w.heard = s.ticks
	if first {
		s.signal()
	}
	return true
}

// take hands out the first responses of the queue. What was handed out before is sent by now.
func (s *Stream) take() []Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(s.handed)
	s.handed = nil
	n, bytes := 0, 0
	for n < len(s.queue) && n < handedResponses && (n == 0 || bytes+s.queue[n].bytes <= handedBytes) {
		bytes += s.queue[n].bytes
		n++
	}
	if n == 0 {
		return nil
	}
	s.handed = s.queue[:n:n]
	if n == len(s.queue) {
		s.queue, s.last = nil, nil
	} else {
		s.queue = s.queue[n:]
	}
	responses := make([]Response, n)
	for i := range s.handed {
		responses[i] = s.handed[i].Response
	}
	return responses
}

// release gives back what responses were counted for. mu is held.
func (s *Stream) release(list []queued) {
	for i := range list {
		s.bytes -= list[i].bytes
		if list[i].Batch == nil {
			s.answers--
		} else {
			s.account.release(list[i].Batch)
			s.hub.waitingEvents.Add(-int64(len(list[i].Batch.Events)))
		}
		s.account.waiting.Add(-responseBytes)
		list[i] = queued{}
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// drop empties the queue of a stream that was closed.
func (s *Stream) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(s.queue)
	s.release(s.handed)
	s.queue, s.handed, s.last = nil, nil, nil
}

// size returns the bytes that are queued or handed out, and how many answers are among that.
func (s *Stream) size() (bytes, answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.answers
}
