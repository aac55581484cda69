package transport

import (
	"context"
	"encoding/binary"
	"net"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"
)

// ConnAdmitter is the remote address of a connection whose listener bounds the memory of connections that are not known to be a
// member's: the connection, its streams and calls, and partly received messages.
type ConnAdmitter interface {
	net.Addr
	// Admit says that the connection is a member's, which has a stream on it until leave is called.
	Admit() (leave func())
	// Hold counts more bytes that the connection holds, or less. It may close this connection, or another one.
	Hold(more int64)
}

// unbounded is the ConnAdmitter of a connection whose listener bounds nothing.
type unbounded struct{ net.Addr }

func (unbounded) Admit() (leave func()) { return func() {} }
func (unbounded) Hold(int64)            {}

// admitterOf finds the admitter of the connection that a stream or call came by.
func admitterOf(ctx context.Context) ConnAdmitter {
	from, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return unbounded{}
	}
	address := from.Addr
	if far, ok := address.(delayedAddr); ok {
		address = far.Addr
	}
	if a, ok := address.(ConnAdmitter); ok {
		return a
	}
	return unbounded{}
}

// streamBytes is what a stream or a call takes while nothing is on its way: goroutines, and what gRPC has of it.
const streamBytes = 32 << 10

// messagePrefixBytes precede each message of gRPC.
const messagePrefixBytes = 5

// countedStream tells the admitter of its connection which messages have arrived in full.
type countedStream struct {
	grpc.ServerStream
	from ConnAdmitter
}

// countStream counts a stream until done is called.
func countStream(s grpc.ServerStream) (counted countedStream, done func()) {
	from := admitterOf(s.Context())
	from.Hold(streamBytes)
	return countedStream{s, from}, func() { from.Hold(-streamBytes) }
}

// RecvMsg implements grpc.ServerStream. The message is an inFrame.
func (s countedStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if err == nil {
		s.from.Hold(-int64(messagePrefixBytes + len(m.(*inFrame).bytes)))
	}
	return err
}

// SendMsg implements grpc.ServerStream. The message is an outFrame.
func (s countedStream) SendMsg(m any) error {
	countAnswer(s.from, m.(*outFrame))
	return s.ServerStream.SendMsg(m)
}

// countedAddr is the ConnAdmitter of a connection whose open streams are counted.
type countedAddr struct {
	ConnAdmitter
	streams *openStreams
}

// countAnswer counts a frame that is handed to gRPC until it has left.
func countAnswer(from ConnAdmitter, frame *outFrame) {
	counted, ok := from.(countedAddr)
	if !ok {
		return
	}
	bytes := len(frame.plain)
	if frame.pooled != nil {
		bytes = len(*frame.pooled)
	}
	counted.streams.answer(int64(messagePrefixBytes + bytes))
}

// countingListener counts what arrives in messages, which streams are open and which answers wait to be sent, for connections
// whose address is a ConnAdmitter.
type countingListener struct{ net.Listener }

// Accept implements net.Listener.
func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, ok := conn.RemoteAddr().(ConnAdmitter)
	if !ok {
		return conn, nil
	}
	c := &countingConn{Conn: conn, from: countedAddr{from, newOpenStreams(from.Hold)}}
	c.in.head = c.from.streams.arrived
	c.out.head, c.out.preface = c.from.streams.left, prefaceBytes
	return c, nil
}

// countingConn is a connection that counts.
type countingConn struct {
	net.Conn
	from    countedAddr
	in, out dataMeter
}

// RemoteAddr implements net.Conn.
func (c *countingConn) RemoteAddr() net.Addr { return c.from }

// Read implements net.Conn.
func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if data := c.in.count(p[:n]); data > 0 {
		c.from.Hold(int64(data))
	}
	return n, err
}

// Write implements net.Conn.
func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if data := c.out.count(p[:n]); data > 0 {
		c.from.streams.sent(int64(data))
	}
	return n, err
}

// Close implements net.Conn.
func (c *countingConn) Close() error {
	c.from.streams.endAll()
	return c.Conn.Close()
}

// NetConn gives what is below, as tls.Conn does.
func (c *countingConn) NetConn() net.Conn { return c.Conn }

const (
	prefaceBytes     = 24 // that a client sends first (RFC 9113, section 3.4)
	frameHeadBytes   = 9  // of each frame (section 4.1)
	frameOfData      = 0  // type of a DATA frame (section 6.1)
	frameTypeInHead  = 3
	frameLengthBytes = 3
)

// dataMeter finds how many bytes of one direction of an HTTP/2 connection are those of DATA frames, padding among them. The
// bytes of a client need not be well-formed: the server of the connection finds that out.
type dataMeter struct {
	preface int                  // bytes of it that were seen
	begun   [frameHeadBytes]byte // of the head of a frame
	had     int                  // bytes of it
	left    int                  // of the payload of the frame
	data    bool
	head    func(kind, flags byte, stream uint32, length int) // told of each frame; may be nil
}

// count returns how many of some bytes, which arrived after those of the calls before, are data.
func (m *dataMeter) count(arrived []byte) (data int) {
	skipped := min(len(arrived), prefaceBytes-m.preface)
	m.preface += skipped
	for arrived = arrived[skipped:]; len(arrived) > 0; {
		if m.left > 0 {
			n := min(m.left, len(arrived))
			if m.data {
				data += n
			}
			m.left -= n
			arrived = arrived[n:]
			continue
		}
		n := copy(m.begun[m.had:], arrived)
		m.had += n
		arrived = arrived[n:]
		if m.had == frameHeadBytes {
			m.had = 0
			for _, b := range m.begun[:frameLengthBytes] {
				m.left = m.left<<8 | int(b)
			}
			m.data = m.begun[frameTypeInHead] == frameOfData
			if m.head != nil {
				rest := m.begun[frameTypeInHead:]
				m.head(rest[0], rest[1], binary.BigEndian.Uint32(rest[2:]), m.left)
			}
		}
	}
	return data
}
