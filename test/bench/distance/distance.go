package distance

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// farConn is a connection on which everything arrives later, in order, without holding up the writer.
type farConn struct {
	net.Conn
	delay   time.Duration
	out, in chan parcel
	rest    []byte
	closed  chan struct{}
	once    sync.Once
}

type parcel struct {
	due   time.Time
	bytes []byte
}

// Dial connects to an address that is so far away, one way.
func Dial(ctx context.Context, address string, delay time.Duration) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	f := &farConn{
		Conn: conn, delay: delay, closed: make(chan struct{}), out: make(chan parcel, 1<<14), in: make(chan parcel, 1<<14),
	}
	go f.send()
	go f.receive()
	return f, nil
}

// Write implements net.Conn.
func (f *farConn) Write(p []byte) (int, error) {
	select {
	case f.out <- parcel{time.Now().Add(f.delay), slices.Clone(p)}:
		return len(p), nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

// Read implements net.Conn.
func (f *farConn) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		next, ok := <-f.in
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(next.due))
		f.rest = next.bytes
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close implements net.Conn. Bytes under way are lost.
func (f *farConn) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *farConn) send() {
	for {
		select {
		case next := <-f.out:
			time.Sleep(time.Until(next.due))
			if _, err := f.Conn.Write(next.bytes); err != nil {
				_ = f.Close()
				return
			}
		case <-f.closed:
			return
		}
	}
}

func (f *farConn) receive() {
	defer close(f.in)
	for {
		buffer := make([]byte, 32<<10)
		n, err := f.Conn.Read(buffer)
		if n > 0 {
			select {
			case f.in <- parcel{time.Now().Add(f.delay), buffer[:n]}:
			case <-f.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn and do nothing: gRPC has deadlines of its own above.
func (f *farConn) SetDeadline(time.Time) error      { return nil }
func (f *farConn) SetReadDeadline(time.Time) error  { return nil }
func (f *farConn) SetWriteDeadline(time.Time) error { return nil }
