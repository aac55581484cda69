package transport

import (
	"context"
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

// countingListener counts what arrives in messages, for connections whose address is a ConnAdmitter.
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
	return &countingConn{Conn: conn, from: from}, nil
}

// countingConn is a connection that counts.
type countingConn struct {
	net.Conn
	from  ConnAdmitter
	meter dataMeter
}

// Read implements net.Conn.
func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if data := c.meter.count(p[:n]); data > 0 {
		c.from.Hold(int64(data))
	}
	return n, err
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

// dataMeter finds how many bytes of a client's HTTP/2 connection are those of DATA frames, padding among them. What it is given
// need not be well-formed: whoever serves the connection finds that out.
type dataMeter struct {
	preface int // bytes of it that were seen
	head    [frameHeadBytes]byte
	had     int // bytes of head
	left    int // of the payload of the frame
	data    bool
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
		n := copy(m.head[m.had:], arrived)
		m.had += n
		arrived = arrived[n:]
		if m.had == frameHeadBytes {
			m.had = 0
			for _, b := range m.head[:frameLengthBytes] {
				m.left = m.left<<8 | int(b)
			}
			m.data = m.head[frameTypeInHead] == frameOfData
		}
	}
	return data
}
