package h2

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Options are what a Server allows its clients.
type Options struct {
	Handler        Handler
	MaxStreams     uint32 // at once on a connection
	MaxHeaderBytes int    // of a request, unpacked (RFC 9113, section 10.5.1)
	StreamWindow   uint32 // bytes that a client may send on a stream before they are taken
	ConnWindow     uint32
	Handshake      time.Duration // until the client's first frame

	// Tab returns what counts the bytes that the client of a connection makes the server keep; nil: they are not counted.
	Tab func(net.Conn) Tab
	// Exhausted is the block of fields that ends a stream for which there are no bytes, Unread is the block of trailers that
	// ends one whose client does not read, and TooLarge is the block that answers a request with more than MaxHeaderBytes.
	Exhausted, Unread, TooLarge []byte

	// Hosts, if not nil, knows which hosts have abandoned many requests. Further connections of theirs are closed at once.
	Hosts Hosts

	// Socket returns the socket below a connection that is not encrypted; nil if there is none: then it costs more.
	Socket func(net.Conn) Socket

	Pings
}

// Pings keep connections alive.
type Pings struct {
	MinPing  time.Duration // how often a client may ping
	Interval time.Duration // after how long without a frame the server pings; zero: never
	Timeout  time.Duration // how long it waits for an answer
}

// Socket is a *net.TCPConn or a *net.UnixConn.
type Socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// Hosts remembers what hosts have abandoned: requests that are not answered when their client drops the connection.
type Hosts interface {
	Admits(from net.Addr) bool
	Add(from net.Addr, requests int)
}

// Tab counts bytes, within a bound that connections share. Its methods are called one at a time.
type Tab interface {
	Take(bytes int64) bool  // false: there is no room, and none were taken
	Force(bytes int64) bool // of what is there already: it has more room, but not without end
	Give(bytes int64)       // gives them back
	Settle()                // gives back what is kept in store
	Close()
	Tight() bool // what does not move is to make room
}

// Handler takes requests.
type Handler interface {
	// Connect is called when a connection begins. It may return another name of it, by which it is closed; of is
	// Stream.Conn of all its streams. With an error it is closed at once.
	Connect(c net.Conn) (known net.Conn, of any, err error)
	// Open takes a request and returns what takes its body; nil: Stream was answered, or reset, and what still comes is
	// dropped.
	Open(s *Stream, fields *Fields, ended bool) Receiver
	// Pause says that all frames that had come were handed on.
	Pause(conn any)
}

// Receiver takes the body of a request.
type Receiver interface {
	// Receive takes bytes, which are valid during the call. A Receiver that does not keep them calls Stream.Took.
	Receive(p []byte, ended bool)
	// Lost says that the stream has ended before it was answered. It may come from any goroutine.
	Lost()
}

// Fields are those of a request. A connection that sends the same ones again gets the same Fields, so that a Handler may keep
// in Parsed what it made of them.
type Fields struct {
	List   []hpack.HeaderField
	Parsed any
	length int64 // that content-length names; negative: none does
	size   int   // bytes of List
}
