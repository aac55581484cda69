package watch

import "slices"

// What a call of Next hands out at most, but for a single response that is larger.
const (
	handedBytes     = 256 << 10
	handedResponses = 1024
)

// keptResponses is for how many responses a stream keeps room while it has nothing to send.
const keptResponses = 128

// responseBytes stands for a response in a queue, without its batch.
const responseBytes = 128

// queued is a response that waits, and what it counts against its stream. One with events is for all members of a party.
type queued struct {
	Response
	number  uint64 // of the queue
	members []*watcher
	told    int // of members, to which it was handed out
	bytes   int
	events  int64 // of all members
}

// enqueue adds an answer whatever the bounds say; Accept has asked. hub.mu is held.
func (s *Stream) enqueue(r Response) {
	s.mu.Lock()
	s.add(queued{Response: r})
	s.mu.Unlock()
	s.signal()
}

// give adds events for a party whatever the bounds say, as one step of catch-up has kept to them. hub.mu is held.
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

// add counts and appends. hub.mu and mu are held.
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

// offer adds events for a party in step, unless the stream or its client is full. An empty stream takes what is larger than all
// it may have, as long as its client has room. hub.mu is held.
func (s *Stream) offer(p *party, batch *Batch) bool {
	limits := &s.hub.options
	s.mu.Lock()
	cost := responseBytes
	if batch != s.last {
		cost += batch.sizeBytes
	}
	charge := cost
	if batch.owner == s.account && batch.holders.Load() > 0 { // another stream of the client has it
		charge = responseBytes
	}
	overdrawn := int64(charge) > s.account.free(limits)
	full := len(s.queue) >= max(limits.StreamResponses, 4*len(s.watchers)) || s.bytes+cost > limits.StreamBytes || overdrawn
	if full && s.bytes > 0 || overdrawn && charge > leastBytes(limits) {
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

// take hands out the first responses of the queue. What was handed out before is sent by now.
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
	if len(s.reader.responses) == 0 { // nothing waits, or all whom it was for have gone
		s.release(s.handed)
		s.handed = nil
		if cap(s.reader.responses) > keptResponses {
			s.reader.responses = nil
		}
	}
	return s.reader.responses
}

// hand makes responses of what is queued. It reports false if there is more to make of it. mu is held.
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

// release gives back what responses were counted for. mu is held.
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

// drop empties the queue of a stream that was closed, and forgets what was handed out: somebody may have the stream for longer.
// The caller of Next is the only caller.
func (s *Stream) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader.responses = nil
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
