package distance

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// piece is the most that one connection sends before the next one of the same link has its turn.
	piece = 16 << 10
	// socketBytes bounds what the kernel keeps of a connection in front of a link.
	socketBytes = 64 << 10
)

// Link is one way of a line between two places. All connections that use it share its bandwidth, a piece each in turn. Bytes
// that wait for it wait at their sender, whose writes block. The zero value is as fast as the machine. Any goroutine may use
// it.
type Link struct {
	rate  atomic.Int64 // bytes a second; zero: as many as there are
	delay atomic.Int64 // nanoseconds
	bytes atomic.Int64

	mu   sync.Mutex
	free time.Time // when what was taken so far has left
}

// SetRate sets how many bytes a second the link carries from now on; zero: as many as there are.
func (l *Link) SetRate(bytesPerSecond int64) { l.rate.Store(bytesPerSecond) }

// SetDelay sets how long each byte is on its way, beside the time that the rate takes.
func (l *Link) SetDelay(delay time.Duration) { l.delay.Store(int64(delay)) }

// Bytes is how many the link has carried, without the headers of TCP and below.
func (l *Link) Bytes() int64 { return l.bytes.Load() }

// carry waits until so many bytes have left, and returns when they arrive.
func (l *Link) carry(n int) time.Time {
	l.bytes.Add(int64(n))
	left := time.Now()
	if rate := l.rate.Load(); rate > 0 {
		l.mu.Lock()
		if l.free.Before(left) {
			l.free = left
		}
		l.free = l.free.Add(time.Duration(float64(n) / float64(rate) * float64(time.Second)))
		left = l.free
		l.mu.Unlock()
		time.Sleep(time.Until(left))
	}
	return left.Add(time.Duration(l.delay.Load()))
}

// Pass connects each client of l to an address over two links: there for the bytes of the client, and back for the answers.
// Where links fails, the connection is refused. It returns when the listener is closed.
func Pass(l net.Listener, address string, links func(from net.Addr) (there, back *Link, err error)) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			there, back, err := links(in.RemoteAddr())
			if err != nil {
				_ = in.Close()
				return
			}
			out, err := net.Dial("tcp", address)
			if err != nil {
				_ = in.Close()
				return
			}
			for _, conn := range []net.Conn{in, out} {
				// A kernel that does not obey keeps more, which is no mistake.
				_ = conn.(*net.TCPConn).SetReadBuffer(socketBytes)
				_ = conn.(*net.TCPConn).SetWriteBuffer(socketBytes)
			}
			go pump(in, out, there)
			go pump(out, in, back)
		}()
	}
}

// pump moves what one connection says to the other one, over a link, and ends both.
func pump(from, to net.Conn, link *Link) {
	under := make(chan parcel, 1<<14)
	go func() {
		defer func() { _, _ = from.Close(), to.Close() }()
		broken := false
		for next := range under {
			if broken {
				continue
			}
			time.Sleep(time.Until(next.due))
			if _, err := to.Write(next.bytes); err != nil {
				broken = true
				_ = from.Close() // ends the reading below
			}
		}
	}()
	defer close(under)
	buffer := make([]byte, piece)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			under <- parcel{link.carry(n), slices.Clone(buffer[:n])}
		}
		if err != nil {
			return
		}
	}
}
