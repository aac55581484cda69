package h2

import (
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// maxBacklog is how many bytes may wait for a client to read before nothing more is read of it. It is more than what large
	// answers bring, so that these hold up no requests.
	maxBacklog = 4 * batchBytes
	// batchBytes is how much is written at once.
	batchBytes = 64 << 10
	// keptBytes is the largest buffer that an idle connection keeps, which is counted with the connection.
	keptBytes = 4 << 10
	// batchRoom is what a batch takes, with the frame that goes beyond batchBytes and frames without DATA.
	batchRoom = batchBytes + maxFrameBytes + keptBytes
)

// batches are what large answers are put together in.
var batches = sync.Pool{New: func() any { return new([batchRoom]byte) }}

type batch = *[batchRoom]byte

// output is what waits to be written. It is guarded by conn.mu.
type output struct {
	out     []byte
	within  []within        // parts of answers that go out between bytes of out
	inside  int             // their bytes
	batch   batch           // in which out is, if it is large
	unsent  int             // bytes that a goroutine is writing
	writing bool            // it is
	later   []Part          // to be released when it has written
	drained *sync.Cond      // when less waits
	wrote   uint64          // how often something other than control frames was written
	soon    bool            // a goroutine will flush
	ready   []*Stream       // with something to send, and a window for it
	stale   int             // streams of ready that were dropped
	socket  Socket          // nil: there is none that may be used
	raw     syscall.RawConn // of the socket
	fields  fieldWriter
	answer  bandwidthAnswer
}

// open prepares to use the socket itself, if there is one.
func (o *output) open(socket Socket) {
	if socket == nil || !rawSockets {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		o.socket, o.raw = socket, raw
	}
}

// schedule puts a stream in line that has something to send and may.
func (c *conn) schedule(s *Stream) {
	if s.scheduled || s.closed || len(s.pending) == 0 || s.sendWindow <= 0 && !s.pending[0].ends {
		return
	}
	s.scheduled = true
	c.ready = append(c.ready, s)
}

// fill moves what the windows allow into out, a frame of each stream in turn.
func (c *conn) fill() {
	if c.batch == nil && len(c.out) <= keptBytes && c.much() {
		c.batch = batches.Get().(batch)
		c.out = append(c.batch[:0], c.out...)
	}
	at := 0
	for ; at < len(c.ready) && len(c.out)+c.inside < batchBytes; at++ {
		s := c.ready[at]
		if s.closed {
			s.scheduled = false
			c.stale--
			continue
		}
		if c.sendWindow <= 0 && !s.pending[0].ends {
			break // until the client gives the connection room
		}
		s.scheduled = false
		c.emit(s)
		c.schedule(s)
	}
	n := copy(c.ready, c.ready[at:])
	clear(c.ready[n:])
	c.ready = c.ready[:n]
}

// much reports whether more is to be written than an idle connection has room for.
func (c *conn) much() bool {
	n := len(c.out)
	for _, s := range c.ready {
		if n += s.waiting; n > keptBytes {
			return true
		}
	}
	return false
}

// tidy takes the dropped streams out of the line once they are most of it: while the window of the connection is closed,
// nothing else does, and a client may open and reset streams all the time.
func (c *conn) tidy() {
	if c.stale <= len(c.ready)/2 {
		return
	}
	c.ready = slices.DeleteFunc(c.ready, func(s *Stream) bool { return s.closed })
	c.stale = 0
}

// emit writes a frame of a stream, and the trailers if they are next.
func (c *conn) emit(s *Stream) {
	if room := int(min(maxFrameBytes, s.sendWindow, c.sendWindow)); room > 0 && !s.pending[0].ends {
		parts := len(s.pending)
		n := c.gather(s, room)
		s.sendWindow -= int64(n)
		c.sendWindow -= int64(n)
		s.waiting -= n
		s.still = 0
		c.wrote++
		if n >= largeBytes || len(s.pending) < parts {
			c.floods.forward()
		}
	}
	if s.room != nil && s.waiting <= maxWaiting {
		s.room.Broadcast()
	}
	if len(s.pending) == 0 || !s.pending[0].ends {
		return
	}
	c.out = c.fields.append(c.out, s.id, s.pending[0].Data, flagEndStream)
	c.wrote++
	c.finish(s)
}

// gather makes one frame of what waits, of at most room bytes.
func (c *conn) gather(s *Stream, room int) (n int) {
	begin := len(c.out)
	c.out = appendHeader(c.out, 0, typeData, 0, s.id)
	for len(s.pending) > 0 && !s.pending[0].ends && n < room {
		p := &s.pending[0]
		k := min(room-n, len(p.Data))
		release := p.Release
		if k < len(p.Data) {
			release = nil
		}
		if vectors && c.raw != nil && k >= vectorBytes {
			c.within = append(c.within, within{at: len(c.out), Part: Part{Data: p.Data[:k], Release: release}})
			c.inside += k
		} else {
			c.out = append(c.out, p.Data[:k]...)
			c.written(release)
		}
		n += k
		if !p.Counted {
			c.pending -= int64(k)
		}
		if p.Data = p.Data[k:]; len(p.Data) > 0 {
			break
		}
		s.pending[0] = part{}
		if len(s.pending) == 1 {
			s.pending = s.pending[:0] // its room is used again
			break
		}
		s.pending = s.pending[1:]
	}
	setLength(c.out[begin:], n)
	return n
}

// maxBatches is how many batches a goroutine writes at once that only wants its answers to be written: it is held up, and with
// it the answers to other connections, as long as a client takes all that comes.
const maxBatches = 4

// written has a part released whose last bytes were copied: with what is within, if it may have been split.
func (c *conn) written(release func()) {
	if release != nil && len(c.within) > 0 {
		c.within = append(c.within, within{at: len(c.out), Part: Part{Release: release}})
		return
	}
	call(release)
}

// free releases a part that is not written any more: once the goroutine is done that may be writing the first piece of it.
func (c *conn) free(p Part) {
	if p.Release != nil && c.writing {
		c.later = append(c.later, p)
		return
	}
	call(p.Release)
}

// flush writes what is there and may be written, as far as the client takes it now; a goroutine writes the rest.
func (c *conn) flush() {
	for round := 1; c.hello && !c.writing && !c.ended; round++ {
		c.fill()
		c.out = c.answer.append(c.out, c.inside, time.Now)
		if len(c.out) == 0 {
			if c.batch != nil { // the client has closed its window meanwhile
				c.empty()
			}
			c.part()
			break
		}
		n := 0
		if c.raw != nil && round <= maxBatches {
			var err error
			if n, err = c.writeNow(); err != nil {
				c.leftover(0).drop()
				c.abort()
				return
			}
		}
		if n == len(c.out)+c.inside {
			c.empty()
			continue
		}
		rest := c.leftover(n)
		c.unsent, c.writing = rest.size, true
		c.deaf = 0
		go c.drain(rest)
	}
	c.weigh()
}

// flushSoon flushes once the goroutines have run that are about to write to other streams of the connection, so that all is one
// write. The connection is locked, and is not meanwhile.
func (c *conn) flushSoon() {
	if c.soon {
		return
	}
	if len(c.streams) > 1 {
		c.soon = true
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		c.soon = false
	}
	c.flush()
}

// writeNow writes as much as fits into the buffer of the socket.
func (c *conn) writeNow() (n int, err error) {
	if len(c.within) == 0 {
		return writeNow(c.raw, c.out)
	}
	return writeVectors(c.raw, vectorsOf(c.out, c.within, 0), false)
}

func (c *conn) empty() {
	drop(c.within)
	clear(c.within)
	c.within, c.inside = c.within[:0], 0
	if c.batch != nil || cap(c.out) > keptBytes {
		c.out = nil
	}
	c.out = c.out[:0]
	c.batch = release(c.batch)
	c.drained.Broadcast()
}

// release gives a batch back, if there is one.
func release(b batch) batch {
	if b != nil {
		batches.Put(b)
	}
	return nil
}

// leftover is what the client did not take at once: all but the first bytes of what is there.
type leftover struct {
	bytes  []byte
	within []within
	begin  int // what was written
	size   int // what was not
	in     batch
}

// leftover takes all but the first n bytes of what is there. The connection is locked.
func (c *conn) leftover(n int) leftover {
	l := leftover{bytes: c.out, within: c.within, begin: n, size: len(c.out) + c.inside - n, in: c.batch}
	c.out, c.within, c.inside, c.batch = nil, nil, 0, nil
	return l
}

// drop says that nothing of it is needed any more. The connection is locked.
func (l leftover) drop() {
	drop(l.within)
	release(l.in)
}

func (c *conn) write(l *leftover) error {
	if len(l.within) == 0 {
		_, err := c.net.Write(l.bytes[l.begin:])
		return err
	}
	_, err := writeVectors(c.raw, vectorsOf(l.bytes, l.within, l.begin), true)
	return err
}

// drain writes what the client did not take at once.
func (c *conn) drain(rest leftover) {
	for {
		err := c.write(&rest)
		c.mu.Lock()
		rest.drop()
		drop(c.later)
		c.later, c.unsent, c.deaf = nil, 0, 0
		if err != nil || c.ended {
			c.writing = false
			c.abort()
			c.mu.Unlock()
			return
		}
		c.fill()
		c.out = c.answer.append(c.out, c.inside, time.Now)
		rest = c.leftover(0)
		c.unsent = rest.size
		if rest.size == 0 {
			rest.drop()
			c.writing = false
			c.part()
		}
		c.weigh()
		c.drained.Broadcast()
		c.mu.Unlock()
		if rest.size == 0 {
			return
		}
	}
}

// abort ends a connection that cannot be written. The goroutine that reads does the rest.
func (c *conn) abort() {
	c.ended = true
	c.drained.Broadcast()
	go c.net.Close() // it waits for the goroutine that reads
}

// lastWords lets the client read what was written before the connection is closed: closing it with bytes that were not read
// would take that back. A client that goes on sending is read in pauses: each of its writes would wake this goroutine.
func (c *conn) lastWords() {
	if c.socket != nil && c.socket.CloseWrite() != nil || c.net.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	buffer := buffers.Get().(*[readBytes]byte)
	defer buffers.Put(buffer)
	for left := lingeringBytes; left > 0; {
		n, err := c.net.Read(buffer[:])
		if err != nil {
			return
		}
		left -= n
		time.Sleep(lingeringPause)
	}
}
