package h2

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// conn is one connection.
type conn struct {
	server *Server
	net    net.Conn
	of     any // the Handler's

	// Of the goroutine that reads.
	headers  *headerReader
	received uint32 // bytes of DATA that the window of the connection has not got back
	window   int64  // that the client has left
	greeted  bool   // the client's first SETTINGS came
	opened   bool   // a request, since answers was asked
	parts    bool   // a frame, or the fields of a request, are not there in full
	now      time.Time
	pings    pings
	unpaid   int // hasty resets that nothing paid for, and that the host is not charged with yet

	floods floods

	mu      sync.Mutex
	seen    uint32 // the highest stream that the client opened
	last    uint32 // the highest one that is served, or was refused
	streams map[uint32]*Stream
	running int // streams that the handler has not left, open or not
	output
	sendWindow  int64 // of the connection
	firstWindow int64 // of a stream
	leaving     leaving
	hello       bool // the preface was written, which comes first
	ended       bool // nothing is written any more
	kept
	gone     bool          // nothing is read any more
	deaf     time.Duration // for how long nothing was taken of what is written
	lastRead time.Time
	probed   time.Time // lastRead when the connection was probed
	pinged   time.Time // by the server, if it waits for the answer
}

func newConn(server *Server, c net.Conn) *conn {
	k := &conn{server: server, net: c, headers: newHeaderReader(server.options.MaxHeaderBytes),
		window: int64(server.options.ConnWindow), streams: map[uint32]*Stream{},
		sendWindow: defaultWindow, firstWindow: defaultWindow, lastRead: time.Now()}
	k.drained = sync.NewCond(&k.mu)
	if k.tab = noTab(noTab{}); server.options.Tab != nil {
		k.tab = server.options.Tab(c)
	}
	return k
}

// serve reads until the connection ends.
func (c *conn) serve() {
	defer c.end()
	if c.net.SetDeadline(time.Now().Add(c.server.options.Handshake)) != nil {
		return
	}
	if c.server.options.Socket != nil {
		c.output.open(c.server.options.Socket(c.net))
	}
	known, of, err := c.server.options.Handler.Connect(c.net)
	if err != nil {
		return
	}
	c.rename(known)
	c.of = of
	if err = c.greet(); err == nil {
		err = c.read(c.take)
	}
	var failed connError
	wrong := errors.As(err, &failed)
	c.charge(wrong && failed.code == EnhanceYourCalm)
	if wrong {
		c.fail(failed)
	}
}

// charge notes what a client abandons that drops its connection, or whose connection is ended for what it sent.
func (c *conn) charge(calmed bool) {
	hosts := c.server.options.Hosts
	if hosts == nil {
		return
	}
	c.mu.Lock()
	requests, now := 0, time.Now()
	for _, s := range c.streams {
		if now.Sub(s.opened) < hastyDrop && (!s.begun || len(s.pending) > 0) {
			requests++
		}
	}
	c.mu.Unlock()
	if calmed {
		requests += calmedRequests
	}
	hosts.Add(c.net.RemoteAddr(), requests)
}

// rename has the connection closed by another name of it.
func (c *conn) rename(known net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net = known
}

// greet exchanges the prefaces. The deadline of the handshake holds until the client's first frame.
func (c *conn) greet() error {
	o := &c.server.options
	start := make([]byte, len(preface))
	if _, err := io.ReadFull(c.net, start); err != nil {
		return err
	}
	var settings []byte
	settings = appendSetting(settings, settingMaxStreams, o.MaxStreams)
	settings = appendSetting(settings, settingWindow, o.StreamWindow)
	settings = appendSetting(settings, settingMaxFrame, maxFrameBytes)
	settings = appendSetting(settings, settingMaxHeaderList, uint32(o.MaxHeaderBytes))
	hello := append(appendHeader(nil, len(settings), typeSettings, 0, 0), settings...)
	hello = appendWindowUpdate(hello, 0, o.ConnWindow-defaultWindow)
	c.mu.Lock()
	c.out, c.hello = hello, true
	c.flush()
	c.mu.Unlock()
	if string(start) != preface {
		return broken(ProtocolError, "no HTTP/2")
	}
	return nil
}

const (
	// yieldBytes is how many bytes of frames are handled before other goroutines run: a client that always has more to be read
	// would have a processor for 10 ms at a time otherwise, and so would each of its connections.
	yieldBytes = 8 << 10
	// yieldStreams is how many streams are lost before other goroutines run, beside those that worked for them.
	yieldStreams = 32
)

// take handles the frames that are in p in full, and returns how many bytes they are.
func (c *conn) take(p []byte) (used int, err error) {
	now := time.Now()
	c.now = now
	c.mu.Lock()
	c.lastRead, c.pinged = now, time.Time{}
	c.mu.Unlock()
	for {
		f, n, err := nextFrame(p[used:])
		if n == 0 || err != nil {
			if err == nil {
				c.remains(len(p)-used, used > 0, now)
				c.server.options.Handler.Pause(c.of)
				err = c.respond()
			}
			if used >= yieldBytes {
				runtime.Gosched()
			}
			return used, err
		}
		used += n
		if err := c.handle(&f, now); err != nil {
			return used, err
		}
		if c.behind() {
			c.server.options.Handler.Pause(c.of)
			if err := c.respond(); err != nil {
				return used, err
			}
		}
	}
}

// remains takes note of what has come of the next frame, if there was or is any.
func (c *conn) remains(rest int, progress bool, now time.Time) {
	if rest == 0 && c.headers.stream == 0 && !c.parts {
		return
	}
	c.parts = rest > 0 || c.headers.stream != 0
	c.mu.Lock()
	c.keepPart(rest, progress, now)
	c.mu.Unlock()
}

// behind reports whether more waits for the client than it should, before all of its frames are handled: a request of a few
// bytes may be answered with kilobytes.
func (c *conn) behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backlogged()
}

// backlogged is behind. The connection is locked.
func (c *conn) backlogged() bool { return len(c.out)+c.unsent > maxBacklog || c.over && c.writing }

// answers reports whether requests were opened since it was asked last.
func (c *conn) answers() bool {
	opened := c.opened
	c.opened = false
	return opened
}

// respond writes what answers the frames of the client itself, and waits while the client does not read. The frames that wait
// then need no window of the client's, so a pause in reading holds up nothing but the client.
func (c *conn) respond() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	for c.backlogged() && !c.ended {
		c.drained.Wait()
	}
	if c.ended {
		return io.ErrClosedPipe
	}
	return nil
}

func (c *conn) handle(f *frame, now time.Time) error {
	if !c.greeted {
		if f.kind != typeSettings || f.has(flagAck) {
			return broken(ProtocolError, "the first frame is not SETTINGS")
		}
		if err := c.greetedBy(); err != nil {
			return err
		}
	}
	if c.headers.stream != 0 && (f.kind != typeContinuation || f.stream != c.headers.stream) {
		return broken(ProtocolError, "a frame within the fields of a request")
	}
	switch f.kind {
	case typeData:
		return c.data(f)
	case typeHeaders:
		return c.header(f)
	case typeContinuation:
		if c.headers.stream == 0 {
			return broken(ProtocolError, "CONTINUATION of nothing")
		}
		done, err := c.headers.proceed(f)
		if !done || err != nil {
			return err
		}
		return c.request(f.stream)
	case typePriority:
		return c.priority(f)
	case typeReset:
		return c.reset(f)
	case typeSettings:
		return c.settings(f)
	case typePing:
		return c.ping(f, now)
	case typeWindowUpdate:
		return c.windowUpdate(f)
	case typePushPromise:
		return broken(ProtocolError, "a client does not push")
	case typeGoAway:
		if f.stream != 0 || len(f.payload) < 8 {
			return broken(ProtocolError, "GOAWAY of a stream")
		}
		return c.floods.idle(idleFrame) // the client opens no more streams, and closes the connection itself
	}
	return c.floods.idle(idleFrame) // frames of unknown types are ignored (section 4.1)
}

// greetedBy ends the handshake, unless the connection is left already: that has a deadline of its own.
func (c *conn) greetedBy() error {
	c.greeted = true
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving.parted {
		return nil
	}
	return c.net.SetDeadline(time.Time{})
}

// priority takes a PRIORITY, which says nothing to this server (RFC 9113, section 5.3.2).
func (c *conn) priority(f *frame) error {
	switch {
	case f.stream == 0:
		return broken(ProtocolError, "PRIORITY of no stream")
	case len(f.payload) != 5:
		return c.wrong(f.stream, FrameSizeError)
	case binary.BigEndian.Uint32(f.payload)&maxStreamID == f.stream:
		return c.wrong(f.stream, ProtocolError)
	}
	return c.floods.idle(idleFrame)
}

// wrong resets a stream, open or not, by an error of its client.
func (c *conn) wrong(id uint32, code Code) error {
	c.mu.Lock()
	s := c.streams[id]
	c.mu.Unlock()
	if s == nil {
		return c.refuse(id, code)
	}
	return c.misled(s, code)
}

// reset takes a RST_STREAM.
func (c *conn) reset(f *frame) error {
	switch {
	case f.stream == 0:
		return broken(ProtocolError, "RST_STREAM of no stream")
	case len(f.payload) != 4:
		return broken(FrameSizeError, "RST_STREAM of a wrong length")
	}
	c.mu.Lock()
	s, seen := c.streams[f.stream], c.seen
	if s != nil {
		c.drop(s)
	}
	c.mu.Unlock()
	if f.stream > seen {
		return broken(ProtocolError, "RST_STREAM of a stream that was not opened")
	}
	if s == nil {
		return c.floods.idle(idleFrame)
	}
	s.lose()
	if c.now.Sub(s.opened) < hastyReset { // its request brought nothing forward
		c.catchUp()
		return c.hasty(idleFrame + s.paid)
	}
	return c.floods.idle(idleFrame)
}

// hasty takes note of a hasty reset of that cost. The host has abandoned the request, unless other requests of the connection
// pay for it: each connection of a host could reset thousands otherwise. Others run between, as after yieldBytes.
func (c *conn) hasty(cost int) error {
	if err := c.floods.idle(cost); err != nil {
		return err
	}
	if c.unpaid++; c.unpaid < resetsTogether || c.floods.score.Load() <= 0 {
		return nil
	}
	c.unpaid = 0
	runtime.Gosched()
	hosts := c.server.options.Hosts
	if hosts == nil {
		return nil
	}
	from := c.net.RemoteAddr()
	if hosts.Add(from, resetsTogether); !hosts.Admits(from) {
		return broken(EnhanceYourCalm, "the client host has reset too many requests")
	}
	return nil
}

// catchUp waits while more than maxUnended streams are worked for that have ended: a client may reset streams faster than
// others get a processor, and each of its connections may.
func (c *conn) catchUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running-len(c.streams) <= maxUnended || c.ended {
		return
	}
	late := false
	timer := time.AfterFunc(endPause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		late = true
		c.drained.Broadcast()
	})
	defer timer.Stop()
	for c.running-len(c.streams) > maxUnended && !c.ended && !late {
		c.drained.Wait()
	}
}

func (c *conn) ping(f *frame, now time.Time) error {
	switch {
	case f.stream != 0:
		return broken(ProtocolError, "PING of a stream")
	case len(f.payload) != 8:
		return broken(FrameSizeError, "PING of a wrong length")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.has(flagAck):
		if string(f.payload) == leavingPing {
			c.leave()
		}
		return c.floods.idle(idleFrame)
	case string(f.payload) == bandwidthPing:
		c.bandwidth(now)
		return c.floods.idle(idleFrame)
	}
	c.out = appendPing(c.out, flagAck, f.payload)
	if err := c.pings.check(now, c.wrote, len(c.streams) > 0, c.server.options.MinPing); err != nil {
		return err
	}
	return c.floods.idle(idleFrame)
}

// fail tells the client why the connection ends.
func (c *conn) fail(why connError) {
	if why.code == EnhanceYourCalm {
		c.server.calmed.Add(1)
	}
	c.mu.Lock()
	c.out = appendGoAway(c.out, c.last, why.code, why.why)
	c.flush()
	if c.net.SetWriteDeadline(time.Now().Add(lingering)) == nil {
		for c.writing && !c.ended {
			c.drained.Wait()
		}
	}
	c.ended = true
	c.mu.Unlock()
	c.lastWords()
}

// end closes the connection, and tells the receivers of streams that are open.
func (c *conn) end() {
	c.mu.Lock()
	c.ended = true
	lost := c.streams
	c.streams = map[uint32]*Stream{}
	for _, s := range lost {
		s.discard()
	}
	c.leaving.stop()
	c.answer.stop()
	c.drained.Broadcast()
	closing := c.net
	c.gone = true
	c.closeTab()
	c.mu.Unlock()
	_ = closing.Close()
	n := 0
	for _, s := range lost {
		s.lose()
		if n++; n%yieldStreams == 0 {
			runtime.Gosched()
		}
	}
}
