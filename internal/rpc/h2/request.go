package h2

import (
	"encoding/binary"
	"slices"
)

func (c *conn) header(f *frame) error {
	if f.stream == 0 {
		return broken(ProtocolError, "HEADERS of no stream")
	}
	block, err := f.unpad()
	if err != nil {
		return err
	}
	if f.has(flagPriority) {
		if len(block) < 5 {
			return broken(FrameSizeError, "no room for the priority")
		}
		if binary.BigEndian.Uint32(block)&maxStreamID == f.stream {
			return broken(ProtocolError, "a stream that depends on itself")
		}
		block = block[5:]
	}
	done, err := c.headers.begin(f, block)
	if !done || err != nil {
		return err
	}
	return c.request(f.stream)
}

// request opens a stream with the fields that were read.
func (c *conn) request(id uint32) error {
	fields, known, err := c.headers.fields() // read in any case: they change the table
	if cost := c.headers.cost(); err == nil && cost > 0 {
		err = c.floods.idle(cost)
	}
	if err != nil {
		return err
	}
	most := int64(c.server.options.MaxStreams)
	c.mu.Lock()
	s, seen, final := c.streams[id], c.seen, c.leaving.final
	if c.seen = max(c.seen, id); !final {
		c.last = c.seen
	}
	full := int64(len(c.streams)) >= most || int64(c.running) >= 2*most
	late := slices.Contains(c.released, id)
	c.mu.Unlock()
	switch {
	case id%2 == 0:
		return broken(ProtocolError, "a stream with an even id")
	case s != nil && s.received:
		return broken(StreamClosed, "HEADERS of a stream that the client has ended")
	case s != nil:
		return c.trailers(s)
	case late: // the client did not know yet that the stream was reset
		return c.floods.idle(idleFrame)
	case id <= seen:
		return broken(StreamClosed, "HEADERS of a stream that was closed")
	case final:
		return c.floods.idle(idleFrame) // it is above what GOAWAY named, and so will be tried elsewhere
	case full:
		return c.refuse(id, RefusedStream)
	case fields == nil:
		return c.deny(id, c.server.options.TooLarge, FrameSizeError)
	case !fields.wellFormed() || c.headers.ends && fields.length > 0:
		return c.refuse(id, ProtocolError)
	}
	cost := int64(streamBytes)
	if !known {
		cost += int64(fields.size)
	}
	if !c.takes(cost) {
		return c.deny(id, c.server.options.Exhausted, RefusedStream)
	}
	c.opened = true
	c.open(id, fields, cost, c.now)
	return nil
}

// takes takes room for a stream.
func (c *conn) takes(cost int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tab.Take(cost)
}

// deny answers a request that is not served with a block of fields; without one, by a reset.
func (c *conn) deny(id uint32, block []byte, code Code) error {
	if len(block) == 0 {
		return c.refuse(id, code)
	}
	c.mu.Lock()
	c.out = c.fields.append(c.out, id, block, flagEndStream)
	if !c.headers.ends {
		c.out = appendReset(c.out, id, NoError)
		c.releaseID(id)
	}
	c.mu.Unlock()
	return c.floods.idle(idleFrame)
}

// wasReleased reports whether the server has reset a stream lately.
func (c *conn) wasReleased(id uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.released, id)
}

// trailers takes those of a request, which gRPC has not.
func (c *conn) trailers(s *Stream) error {
	if !c.headers.ends {
		return broken(ProtocolError, "HEADERS within a request")
	}
	c.mu.Lock()
	s.received = true
	c.mu.Unlock()
	if s.missing > 0 {
		return c.misled(s, ProtocolError)
	}
	s.deliver(nil, true)
	return nil
}

// refuse resets a stream that was not opened. Clients may be refused, but an error of theirs costs them more.
func (c *conn) refuse(id uint32, code Code) error {
	c.mu.Lock()
	c.out = appendReset(c.out, id, code)
	c.releaseID(id)
	c.mu.Unlock()
	cost := wrongFrame
	if code == RefusedStream || code == StreamClosed {
		cost = idleFrame
	}
	return c.floods.idle(cost)
}

// misled resets a stream by an error of its client.
func (c *conn) misled(s *Stream, code Code) error {
	s.Reset(code)
	s.lose()
	return c.floods.idle(wrongFrame)
}

func (c *conn) data(f *frame) error {
	if f.stream == 0 {
		return broken(ProtocolError, "DATA of no stream")
	}
	size := uint32(len(f.payload))
	if c.window -= int64(size); c.window < 0 {
		return broken(FlowControlError, "more DATA than the window of the connection allows")
	}
	c.refill(size)
	p, err := f.unpad()
	if err != nil {
		return err
	}
	c.mu.Lock()
	s, seen := c.streams[f.stream], c.seen
	c.mu.Unlock()
	switch {
	case f.stream > seen:
		return broken(ProtocolError, "DATA of a stream that was not opened")
	case s == nil && len(p) >= largeBytes: // an upload that was answered early: nothing is gained by telling it twice
		return nil
	case s == nil && c.wasReleased(f.stream): // the client did not know yet that the stream was reset
		return c.floods.idle(idleFrame)
	case s == nil:
		return c.refuse(f.stream, StreamClosed)
	case s.received:
		return c.misled(s, StreamClosed)
	}
	if !s.arrived(size, f.has(flagEndStream)) {
		return c.misled(s, FlowControlError)
	}
	if len(p) == 0 && !s.received {
		if err := c.floods.idle(idleFrame); err != nil {
			return err
		}
	} else {
		s.paid += c.floods.forward()
	}
	s.Took(int(size) - len(p)) // padding
	if !s.counts(len(p)) {
		return c.misled(s, ProtocolError)
	}
	s.deliver(p, s.received)
	return nil
}

// refill gives the client the window of the connection back.
func (c *conn) refill(size uint32) {
	if c.received += size; c.received < c.server.options.ConnWindow/4 {
		return
	}
	c.mu.Lock()
	c.out = appendWindowUpdate(c.out, 0, c.received)
	c.mu.Unlock()
	c.window += int64(c.received)
	c.received = 0
}
