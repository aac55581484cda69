package watch

import "slices"

// Bounds of one result of Next, but for a single response that is larger.
const (
	handedBytes     = 256 << 10
	handedResponses = 1024
)

// keptResponses is the number of responses for which a stream keeps room while it has nothing to send.
const keptResponses = 128

// responseBytes is the memory counted for a queued response, without its batch.
const responseBytes = 128

// queued is a response that waits, and its counts against its stream. One with events is for all members of a party.
type queued struct {
	Response
	number  uint64 // its number in the queue
	members []*watcher
	told    int // of members to which it was handed out
	bytes   int
	events  int64 // of all members
}

// enqueue adds an answer whatever the bounds say; Accept has checked them. hub.mu is held.
func (s *Stream) enqueue(r Response) {
	s.mu.Lock()
	s.add(queued{Response: r})
	s.mu.Unlock()
	s.signal()
}

// give adds events for a party whatever the bounds say, as the step of catch-up has kept to them. hub.mu is held.
func (s *Stream) give(p *party, batch *Batch) {
	s.mu.Lock()
	s.add(eventsFor(p, batch))
	s.mu.Unlock()
	p.heard = s.ticks
	s.signal()
}

func eventsFor(p *party, batch *Batch) queued {
	return queued{
		Response: Response{Revision: batch.Revision, Batch: batch},
		members:  p.members[:len(p.members):len(p.members)], events: int64(len(batch.Events)) * int64(p.live),
	}
}

// add counts and appends q. hub.mu and mu are held.
func (s *Stream) add(q queued) {
	if s.closed.Load() {
		return
	}
	q.bytes = responseBytes
	if q.Batch == nil {
		s.answers++
	} else {
		s.account.charge(q.Batch)
		s.hub.waitingEvents.Add(q.events)
		if q.Batch != s.last {
			q.bytes += q.Batch.sizeBytes
			s.last = q.Batch
		}
	}
	s.account.add(responseBytes)
	s.bytes += q.bytes
	q.number = s.added
	s.added++
	s.queue = append(s.queue, q)
}

// offer adds events for a party in step, unless the stream or its client is full. An empty stream takes a batch above its
// bound, if its client has room. hub.mu is held.
func (s *Stream) offer(p *party, batch *Batch) bool {
	limits := &s.hub.options
	s.mu.Lock()
	cost := responseBytes
	if batch != s.last {
		cost += batch.sizeBytes
	}
	charge := cost
	if batch.owner == s.account && batch.holders.Load() > 0 { // another stream of the client has it, too
		charge = responseBytes
	}
	overdrawn := int64(charge) > s.account.free(limits)
	full := len(s.queue) >= max(limits.StreamResponses, 4*len(s.watchers)) || s.bytes+cost > limits.StreamBytes || overdrawn
	if full && s.bytes > 0 || overdrawn && charge > s.account.least(limits) {
		s.mu.Unlock()
		return false
	}
	s.add(eventsFor(p, batch))
	first := len(s.queue) == 1
	s.mu.Unlock()
	p.heard = s.ticks
	if first {
		s.signal()
	}
	return true
}

// take hands out the first responses of the queue. Those handed out before count as sent now.
func (s *Stream) take() []Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(s.handed)
	s.handed = nil
	clear(s.reader.responses)
	s.reader.responses = s.reader.responses[:0]
	done, bytes := 0, 0
	for ; done < len(s.queue) && len(s.reader.responses) < handedResponses; done++ {
		q := &s.queue[done]
		if bytes += q.bytes; bytes > handedBytes && len(s.reader.responses) > 0 {
			break
		}
		if !s.hand(q) {
			break
		}
	}
	s.handed = s.queue[:done:done]
	if done == len(s.queue) {
		s.queue, s.last = nil, nil
	} else {
		s.queue = s.queue[done:]
	}
	if len(s.reader.responses) == 0 { // the queue is empty, or all its watchers have gone
		s.release(s.handed)
		s.handed = nil
		if cap(s.reader.responses) > keptResponses {
			s.reader.responses = nil
		}
	}
	return s.reader.responses
}

// hand makes responses of a queued one. It returns false if there are more to make. mu is held.
func (s *Stream) hand(q *queued) bool {
	if q.Batch == nil {
		s.reader.responses = append(s.reader.responses, q.Response)
		return true
	}
	s.reader.responses = slices.Grow(s.reader.responses, min(len(q.members)-q.told, handedResponses-len(s.reader.responses)))
	for ; q.told < len(q.members); q.told++ {
		if len(s.reader.responses) >= handedResponses {
			return false
		}
		if w := q.members[q.told]; q.number < w.until {
			r := q.Response
			r.WatchID, r.Fragment = w.id, w.fragment
			s.reader.responses = append(s.reader.responses, r)
		}
	}
	return true
}

// release gives back the counts of responses. mu is held.
func (s *Stream) release(list []queued) {
	for i := range list {
		s.bytes -= list[i].bytes
		if list[i].Batch == nil {
			s.answers--
		} else {
			s.account.release(list[i].Batch)
			s.hub.waitingEvents.Add(-list[i].events)
		}
		s.account.add(-responseBytes)
		list[i] = queued{}
	}
	s.hub.overdrafts.settle(&s.overdraft, s.bytes)
	s.hub.overdrafts.freed()
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// dropQueue empties the queue of a stream that was stopped.
func (s *Stream) dropQueue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(s.queue)
	s.queue, s.last = nil, nil
}

// drop empties the queue of a closed stream, and drops the responses that were handed out: other code may keep the stream for
// longer. Only the caller of Next calls it.
func (s *Stream) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader.responses = nil
	s.release(s.queue)
	s.release(s.handed)
	s.queue, s.handed, s.last = nil, nil, nil
}

// size returns the bytes that are queued or handed out, and the number of answers among them.
func (s *Stream) size() (bytes, answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.answers
}
