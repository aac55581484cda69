package h2

import (
	"time"
)

const (
	// streamBytes is what a stream takes that was opened, beside its fields.
	streamBytes = 1<<10 + promisedBytes
	// promisedBytes may wait of a stream even if there is no room: a small answer, or one small message at a time. They are
	// counted with the stream.
	promisedBytes = 512
	// unreadTimeout is how long a client may take nothing of a stream's answer: programs stop while their users read, and
	// machines sleep. Where room is scarce it is scarceUnreadTimeout.
	unreadTimeout       = 5 * time.Minute
	scarceUnreadTimeout = 30 * time.Second
	// roomRetry is how often a stream that has no room for what it sends looks again.
	roomRetry = 250 * time.Millisecond
	// partTimeout is how long a frame, or the fields of a request, may take to come in full.
	partTimeout = 30 * time.Second
)

// noTab counts nothing.
type noTab struct{}

func (noTab) Take(int64) bool  { return true }
func (noTab) Force(int64) bool { return true }
func (noTab) Give(int64)       {}
func (noTab) Settle()          {}
func (noTab) Close()           {}
func (noTab) Tight() bool      { return false }

// kept is what the client of a connection makes the server keep, and what is told to the tab. It is guarded by conn.mu.
type kept struct {
	tab      Tab
	closed   bool
	pending  int64 // bytes of answers that wait for windows, without those that are counted elsewhere
	counted  int64 // of pending and of what waits for the socket, as the tab knows it
	over     bool  // there was no room for what waits for the socket
	rest     int64 // of a frame, or of fields, that are not there in full
	since    time.Time
	released []uint32 // streams that the server reset lately, whose client may not know it
}

// weigh tells the tab what waits for the client. The connection is locked.
func (c *conn) weigh() {
	if c.kept.closed {
		return
	}
	now := c.pending
	if c.writing {
		now += int64(max(0, len(c.out)+c.inside+c.unsent-keptBytes))
	}
	switch more := now - c.counted; {
	case more == 0:
		return
	case more < 0:
		c.over = false
		c.tab.Give(-more)
	case !c.tab.Take(more):
		if c.over = true; !c.tab.Force(more) {
			c.overdraw()
			return
		}
	}
	c.counted = now
}

// overdraw ends a connection whose client does not read what waits for its socket, and whose host has taken twice its room. The
// connection is locked.
func (c *conn) overdraw() {
	if !c.ended {
		c.abort()
	}
}

// admits takes room for parts of an answer that are about to wait; false if there is none. The connection is locked.
func (s *Stream) admits(parts []Part) bool {
	n := waiting(parts)
	switch {
	case n == 0:
	case s.c.tab.Take(n):
		s.c.counted += n
	case int64(s.waiting)+n > promisedBytes:
		return false
	default:
		for i := range parts {
			parts[i].Counted = true // with the stream
		}
	}
	return true
}

// waiting is how many bytes of parts are not counted elsewhere.
func waiting(parts []Part) (n int64) {
	for _, p := range parts {
		if !p.Counted {
			n += int64(len(p.Data))
		}
	}
	return n
}

// admit waits until there is room for parts of a stream's answer, and ends the stream if there is none for too long. The
// connection is locked.
func (s *Stream) admit(parts []Part) bool {
	for waited := time.Duration(0); !s.closed && !s.c.ended; waited += roomRetry {
		if s.admits(parts) {
			return true
		}
		if waited >= scarceUnreadTimeout {
			s.exhaust()
			break
		}
		s.pause()
	}
	return false
}

// pause waits for a while, or until something has changed. The connection is locked.
func (s *Stream) pause() {
	if s.room == nil {
		s.wantRoom()
	}
	retry := time.AfterFunc(roomRetry, func() {
		s.c.mu.Lock()
		s.room.Broadcast()
		s.c.mu.Unlock()
	})
	s.room.Wait()
	retry.Stop()
}

// exhaust ends a stream for whose answer there is no room. The connection is locked.
func (s *Stream) exhaust() {
	block := s.c.server.options.Exhausted
	if s.begun {
		block = s.c.server.options.Unread
	}
	s.abandon(block)
}

// abandon drops what waits of an answer, and ends the stream with a block of fields. The connection is locked.
func (s *Stream) abandon(block []byte) {
	if s.closed || s.c.ended {
		return
	}
	c := s.c
	s.abandoned = true
	if len(block) == 0 {
		c.out = appendReset(c.out, s.id, EnhanceYourCalm)
		c.drop(s)
	} else {
		c.out = c.fields.append(c.out, s.id, block, flagEndStream)
		c.finish(s)
	}
	c.flush()
}

// Abandoned reports whether the server ended the stream for want of room or time; otherwise its client or the connection did.
func (s *Stream) Abandoned() bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.abandoned
}

// Abandon ends a stream whose client does not read: Send returns false, and what waits is dropped.
func (s *Stream) Abandon() {
	s.c.mu.Lock()
	s.abandon(s.c.server.options.Unread)
	s.c.mu.Unlock()
	s.lose()
}

// Hold says how many bytes of the request are kept for the stream now; false: there is no room, and nothing has changed. For a
// stream that is over nothing is kept.
func (s *Stream) Hold(bytes int) bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	more := int64(bytes) - s.body
	switch {
	case s.closed && s.left || s.c.kept.closed:
		return false
	case more > 0 && !s.c.tab.Take(more):
		return false
	case more < 0:
		s.c.tab.Give(-more)
	}
	s.body += more
	return true
}

// settleStream gives back what a stream took, once no goroutine works for it and its client has its answer. The connection is
// locked.
func (c *conn) settleStream(s *Stream) {
	if !s.closed || !s.left || c.kept.closed {
		return
	}
	c.tab.Give(s.cost + s.body)
	s.cost, s.body = 0, 0
}

// closeTab gives all back once no goroutine works for a connection that has ended. The connection is locked.
func (c *conn) closeTab() {
	if c.gone && c.running == 0 && !c.kept.closed {
		c.kept.closed = true
		c.tab.Close()
	}
}

// keepPart takes note of what has come of a frame, or of fields, that are not there in full; progress: others are. The
// connection is locked.
//
// It is at most a frame and the fields of a request. A connection whose host has taken twice its room ends.
func (c *conn) keepPart(rest int, progress bool, now time.Time) {
	if c.headers.stream != 0 {
		rest += c.headers.size
		progress = progress && c.rest == 0
	}
	switch more := int64(rest) - c.rest; {
	case more > 0 && !c.tab.Force(more):
		c.turnAway("the client host has sent too much in parts")
		return
	case more < 0:
		c.tab.Give(-more)
	}
	if c.rest = int64(rest); rest == 0 {
		c.since = time.Time{}
	} else if progress || c.since.IsZero() {
		c.since = now
	}
}

// turnAway ends a connection and says why. The connection is locked.
func (c *conn) turnAway(why string) {
	if c.ended {
		return
	}
	c.out = appendGoAway(c.out, c.last, EnhanceYourCalm, why)
	c.flush()
	c.abort()
}

// tend gives back what a connection does not need, and ends what does not move; passed is the time since it did so last.
func (c *conn) tend(now time.Time, passed time.Duration) {
	for _, s := range c.unmoved(now, passed) {
		s.lose()
	}
}

// unmoved is tend, but for telling who worked for the streams that it returns.
func (c *conn) unmoved(now time.Time, passed time.Duration) (ended []*Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.kept.closed {
		return nil
	}
	c.tab.Settle()
	if !c.since.IsZero() && now.Sub(c.since) > partTimeout {
		c.turnAway("a frame, or the fields of a request, did not come in full")
		return nil
	}
	if c.counted == 0 {
		c.deaf = 0
		return nil
	}
	patience := unreadTimeout
	if c.tab.Tight() {
		patience = scarceUnreadTimeout
	}
	if c.deaf += passed; c.writing && c.deaf >= patience {
		c.abort()
		return nil
	}
	for _, s := range c.streams {
		if s.waiting == 0 {
			continue
		}
		if s.still += passed; s.still < patience {
			continue
		}
		s.abandon(c.server.options.Unread)
		ended = append(ended, s)
	}
	return ended
}

// maxReleased is how many streams are remembered that the server reset.
const maxReleased = 32

// release takes note that the server reset a stream, on which frames may still come (RFC 9113, section 5.1). The connection is
// locked.
func (c *conn) releaseID(id uint32) {
	if len(c.released) == maxReleased {
		copy(c.released, c.released[1:])
		c.released = c.released[:maxReleased-1]
	}
	c.released = append(c.released, id)
}
