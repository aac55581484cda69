package h2

import (
	"sync"
	"time"
)

// Stream is one request and its answer.
type Stream struct {
	id uint32
	c  *conn

	// received says that the request has come to its end. Only the goroutine that reads writes it, with c.mu.
	received bool
	missing  int64 // bytes of the body, if content-length says how many there are; of the goroutine that reads

	// Guarded by c.mu.
	receiver   Receiver
	settled    bool   // answered, or lost
	abandoned  bool   // ended by the server for want of room or time
	orphan     bool   // lost before receiver was known
	window     int64  // that the client has left
	taken      uint32 // bytes that the window has not got back yet
	sendWindow int64
	pending    []part
	waiting    int // bytes of pending
	room       *sync.Cond
	scheduled  bool
	closed     bool
	begun      bool          // the fields of the answer were written
	left       bool          // no goroutine works for it
	cost, body int64         // what the tab counts for it: its fields and the like, and its request
	still      time.Duration // for how long its client has taken nothing of what waits
	opened     time.Time
	paid       int // by how much its DATA lowered the score of the connection
}

// Part is bytes of an answer. Release, if not nil, is called once, when they were written, or dropped, while the connection is
// locked: it must not call back.
type Part struct {
	Data    []byte
	Release func()
	Counted bool // elsewhere, until Release
}

// part is a Part, or the trailers.
type part struct {
	Part
	ends bool // Data is the block of the trailers
}

// open begins a request.
func (c *conn) open(id uint32, fields *Fields, cost int64, now time.Time) {
	s := &Stream{id: id, c: c, received: c.headers.ends, window: int64(c.server.options.StreamWindow), missing: fields.length,
		cost: cost, opened: now}
	c.mu.Lock()
	s.sendWindow = c.firstWindow
	c.streams[id] = s
	c.running++
	c.mu.Unlock()
	receiver := c.server.options.Handler.Open(s, fields, c.headers.ends)
	c.mu.Lock()
	s.receiver = receiver
	orphan := s.orphan
	c.mu.Unlock()
	if orphan && receiver != nil {
		receiver.Lost()
	}
}

// Conn is what the Handler made of the connection.
func (s *Stream) Conn() any { return s.c.of }

// Flush writes what waits for the connection.
func (s *Stream) Flush() {
	s.c.mu.Lock()
	s.c.flush()
	s.c.mu.Unlock()
}

// Left says that no goroutine works for the stream any more. It is called once for each.
func (s *Stream) Left() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.left = true
	s.c.running--
	s.c.drained.Broadcast() // for catchUp
	s.c.settleStream(s)
	s.c.closeTab()
}

// arrived takes n bytes off the window.
func (s *Stream) arrived(n uint32, ended bool) bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.received = ended
	s.window -= int64(n)
	return s.window >= 0
}

// Took gives the client n bytes of the window back.
func (s *Stream) Took(n int) {
	if n == 0 {
		return
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.taken += uint32(n); s.closed || s.received || s.taken < s.c.server.options.StreamWindow/4 {
		return
	}
	s.c.out = appendWindowUpdate(s.c.out, s.id, s.taken)
	s.window += int64(s.taken)
	s.taken = 0
	s.c.flush()
}

// counts reports whether n bytes more of the body are what content-length promises.
func (s *Stream) counts(n int) bool {
	if s.missing < 0 {
		return true
	}
	if s.missing < int64(n) {
		return false
	}
	s.missing -= int64(n)
	return !s.received || s.missing == 0
}

// deliver hands bytes of a request on. Only the goroutine that reads calls it, after open.
func (s *Stream) deliver(p []byte, ended bool) {
	if s.receiver == nil {
		s.Took(len(p))
		return
	}
	s.receiver.Receive(p, ended)
}

// lose tells the receiver that the stream is gone, unless it was answered.
func (s *Stream) lose() {
	s.c.mu.Lock()
	if s.settled {
		s.c.mu.Unlock()
		return
	}
	s.settled = true
	receiver := s.receiver
	s.orphan = receiver == nil
	s.c.mu.Unlock()
	if receiver != nil {
		receiver.Lost()
	}
}

// Message is a message that encodes itself.
type Message interface {
	SizeWire() int
	AppendWire(dst []byte) []byte
}

// PrefixBytes is the length of gRPC's prefix of a message: whether it is compressed, and its length.
const PrefixBytes = 5

// AppendPrefix writes the prefix of a message that is not compressed.
func AppendPrefix(dst []byte, size int) []byte {
	return append(dst, 0, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
}

// Answer answers a call that succeeded with one small message, without flushing it.
func (s *Stream) Answer(m Message) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	s.settled = true
	if s.closed || c.ended {
		return
	}
	size := m.SizeWire()
	whole := int64(size + PrefixBytes)
	c.out = c.fields.appendAnswer(c.out, s.id)
	if whole <= min(maxFrameBytes, c.sendWindow, s.sendWindow) && len(c.ready) == 0 {
		c.sendWindow -= whole
		c.out = AppendPrefix(appendHeader(c.out, int(whole), typeData, 0, s.id), size)
		c.out = m.AppendWire(c.out)
		c.out = c.fields.appendOK(c.out, s.id)
		c.wrote++
		c.floods.forward()
		c.finish(s)
		return
	}
	s.begun = true
	parts := []Part{{Data: m.AppendWire(AppendPrefix(make([]byte, 0, whole), size))}}
	if !s.admits(parts) {
		s.exhaust()
		return
	}
	s.enqueue(parts[0])
	s.conclude(AppendField(nil, "grpc-status", "0"))
}

// Reply answers a call at once: with the fields in header, unless that is empty, with parts, and with the fields in trailers.
// Both are blocks that change no table.
func (s *Stream) Reply(header []byte, parts []Part, trailers []byte) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.settled = true
	if s.closed || s.c.ended {
		drop(parts)
		return
	}
	if !s.admits(parts) {
		drop(parts)
		s.exhaust()
		return
	}
	if len(header) > 0 {
		s.begun = true
		s.c.out = s.c.fields.append(s.c.out, s.id, header, 0)
	}
	for _, p := range parts {
		s.enqueue(p)
	}
	s.conclude(trailers)
	s.c.flushSoon()
}

// Refuse answers a call with the fields in trailers alone, without flushing them: a Handler or a Receiver that is called need
// not, because what came is answered once it was handled. Thousands of calls may come that are refused.
func (s *Stream) Refuse(trailers []byte) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.settled = true
	if !s.closed && !s.c.ended {
		s.conclude(trailers)
	}
}

// Headers writes the fields of an answer, without flushing them. block is a block that changes no table.
func (s *Stream) Headers(block []byte) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.closed || s.c.ended {
		return
	}
	s.begun = true
	s.c.out = s.c.fields.append(s.c.out, s.id, block, 0)
}

// maxWaiting is how many bytes of a stream may wait for the client.
const maxWaiting = 64 << 10

// Send writes parts of an answer once there is room for more: false if the stream has ended.
func (s *Stream) Send(parts []Part) bool {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.waitForRoom()
	if !s.admit(parts) {
		drop(parts)
		return false
	}
	for _, p := range parts {
		s.enqueue(p)
	}
	s.c.flushSoon()
	return true
}

// WaitSent waits until little of what was sent waits for the client, or the stream has ended.
func (s *Stream) WaitSent() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.waitForRoom()
}

// waitForRoom waits until at most maxWaiting bytes wait for the client. The connection is locked.
func (s *Stream) waitForRoom() {
	s.wantRoom()
	for s.waiting > maxWaiting && !s.closed && !s.c.ended {
		s.room.Wait()
	}
}

func (s *Stream) wantRoom() {
	if s.room == nil {
		s.room = sync.NewCond(&s.c.mu)
	}
}

// Reset ends a stream at once.
func (s *Stream) Reset(code Code) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.reset(code)
}

// Expire ends a stream whose time is over, if something waits for its client: Send must not wait any longer.
func (s *Stream) Expire() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.waiting > 0 {
		s.reset(Cancel)
	}
}

// reset is Reset. The connection is locked.
func (s *Stream) reset(code Code) {
	if s.closed || s.c.ended {
		return
	}
	s.c.out = appendReset(s.c.out, s.id, code)
	if !s.received {
		s.c.releaseID(s.id)
	}
	s.c.drop(s)
	s.c.flush()
}

// enqueue adds a part to what waits. The connection is locked.
func (s *Stream) enqueue(p Part) {
	if len(p.Data) == 0 {
		call(p.Release)
		return
	}
	if len(s.pending) == 0 {
		s.still = 0
	}
	s.pending = append(s.pending, part{Part: p})
	s.waiting += len(p.Data)
	if !p.Counted {
		s.c.pending += int64(len(p.Data))
	}
	s.c.schedule(s)
}

// conclude ends an answer. The connection is locked.
func (s *Stream) conclude(trailers []byte) {
	if len(s.pending) == 0 {
		s.c.out = s.c.fields.append(s.c.out, s.id, trailers, flagEndStream)
		s.c.wrote++
		s.c.floods.forward()
		s.c.finish(s)
		return
	}
	s.pending = append(s.pending, part{Part: Part{Data: trailers}, ends: true})
}

// discard drops what waits. The connection is locked.
func (s *Stream) discard() {
	s.closed = true
	for _, p := range s.pending {
		if !p.Counted && !p.ends {
			s.c.pending -= int64(len(p.Data))
		}
		s.c.free(p.Part)
	}
	s.pending, s.waiting = nil, 0
	if s.room != nil {
		s.room.Broadcast()
	}
	s.c.settleStream(s)
	s.c.weigh()
}

// drop forgets a stream. The connection is locked.
func (c *conn) drop(s *Stream) {
	delete(c.streams, s.id)
	s.discard()
	if s.scheduled {
		c.stale++
		c.tidy()
	}
}

// finish forgets a stream whose trailers were written. The connection is locked.
func (c *conn) finish(s *Stream) {
	if !s.received {
		c.out = appendReset(c.out, s.id, NoError) // the client need send no more (RFC 9113, section 8.1)
		c.releaseID(s.id)
	}
	c.drop(s)
}

func drop[P interface{ released() }](parts []P) {
	for _, p := range parts {
		p.released()
	}
}

// released says that a part is not needed any more. The connection is locked.
func (p Part) released() { call(p.Release) }

func call(release func()) {
	if release != nil {
		release()
	}
}
