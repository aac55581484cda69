package pingack

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

const (
	// patience is how long an answer waits.
	patience = 100 * time.Millisecond
	// enoughBytes is how much is written before an answer goes at once. A client whose window is the smallest, 64 KiB, lets it
	// grow when two thirds of it came between a ping and its answer.
	enoughBytes = 16 << 10

	frameHeaderBytes = 9
)

// answer is a PING frame with the ACK flag and the data that grpc-go puts into pings of bandwidth: length 8, type 6, flags 1,
// stream 0.
const answer = "\x00\x00\x08\x06\x01\x00\x00\x00\x00" + "\x02\x04\x10\x10\x09\x0e\x07\x07"

// Listen lets answers wait on the connections of a listener on which a server speaks HTTP/2, from its first byte on.
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection on which answers wait.
type conn struct {
	net.Conn

	mu      sync.Mutex
	at      frames // how far the server has written
	waits   bool   // an answer
	overdue bool   // the answer goes when the frame that is being written has ended
	since   int    // bytes written while it waited
	timer   *time.Timer
	closed  bool
}

// NetConn gives what is below, as tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if string(p) == answer && c.at.boundary() && !c.waits && !c.closed {
		c.wait()
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	c.at.advance(p[:n])
	if c.waits && err == nil {
		c.since += n
		if c.overdue || c.since >= enoughBytes {
			err = c.flush()
		}
	}
	return n, err
}

func (c *conn) wait() {
	c.waits, c.since = true, 0
	if c.timer == nil {
		c.timer = time.AfterFunc(patience, c.expire)
		return
	}
	c.timer.Reset(patience)
}

// expire is called by the timer.
func (c *conn) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits {
		c.overdue = true
		_ = c.flush() // the server notices what is wrong with the connection when it reads, or writes next
	}
}

// flush writes the answer that waits, unless that would be within a frame.
func (c *conn) flush() error {
	if !c.at.boundary() {
		return nil
	}
	c.waits, c.overdue = false, false
	c.timer.Stop()
	_, err := c.Conn.Write([]byte(answer))
	return err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close() // ends a Write that is under way
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.waits = true, false
	if c.timer != nil {
		c.timer.Stop()
	}
	return err
}

// frames follows a stream of HTTP/2 frames (RFC 9113, section 4.1).
type frames struct {
	header [frameHeaderBytes]byte
	read   int // bytes of the header
	rest   int // bytes of the payload that are still to come
}

// boundary reports whether a frame has ended and the next one not begun.
func (f *frames) boundary() bool { return f.read == 0 && f.rest == 0 }

// advance takes note of bytes that follow those before.
func (f *frames) advance(p []byte) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, len(p))
			f.rest -= n
			p = p[n:]
			continue
		}
		n := copy(f.header[f.read:], p)
		f.read += n
		p = p[n:]
		if f.read == frameHeaderBytes {
			f.read = 0
			f.rest = int(binary.BigEndian.Uint32(f.header[:]) >> 8) // the first three bytes
		}
	}
}
