package transport

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/quorate/quorate/internal/consensus"
)

// delayedBytes is how much may be under way on a delayed connection before its writer waits, as for a full socket. It is
// above what flow control lets gRPC send without an answer, so that a long way costs no more than it does in a network.
const delayedBytes = 2 * connWindowBytes

// delayed is a connection with an added delay: each write is sent later by the same time, in order, and without
// blocking the writer. It lies below gRPC, so that messages, calls, snapshots and flow control are all delayed as by a
// longer network.
type delayed struct {
	net.Conn
	to    atomic.Uint64                             // the member at the other end, once it is known
	delay func(to consensus.MemberID) time.Duration // asked at each write
	wake  chan struct{}                             // capacity one; set whenever something waits
	over  chan struct{}                             // closed by Close

	mu    sync.Mutex
	room  sync.Cond // there is less under way, or nothing more can be sent
	queue []parcel
	bytes int   // of the queue, and of what is being written
	err   error // of the connection; nothing is sent any more
}

// parcel is one write on its way.
type parcel struct {
	due   time.Time
	bytes []byte
}

func newDelayed(conn net.Conn, delay func(consensus.MemberID) time.Duration) *delayed {
	d := &delayed{Conn: conn, delay: delay, wake: make(chan struct{}, 1), over: make(chan struct{})}
	d.room.L = &d.mu
	go d.carry() // ends with Close, which gRPC calls for every connection that it was given
	return d
}

// Write implements net.Conn. An error that it returns belongs to an earlier write, as with any socket.
func (d *delayed) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.err == nil && d.bytes > 0 && d.bytes+len(p) > delayedBytes {
		d.room.Wait()
	}
	if d.err != nil {
		return 0, d.err
	}
	d.queue = append(d.queue, parcel{due: time.Now().Add(d.delay(consensus.MemberID(d.to.Load()))), bytes: slices.Clone(p)})
	d.bytes += len(p)
	offer(d.wake)
	return len(p), nil
}

// Close implements net.Conn. Bytes under way are lost.
func (d *delayed) Close() error {
	d.mu.Lock()
	select {
	case <-d.over:
	default:
		close(d.over)
	}
	d.mu.Unlock()
	d.fail(net.ErrClosed)
	return d.Conn.Close()
}

// RemoteAddr implements net.Conn; it leads from the context of a request back to the connection.
func (d *delayed) RemoteAddr() net.Addr { return delayedAddr{d.Conn.RemoteAddr(), d} }

type delayedAddr struct {
	net.Addr
	conn *delayed
}

func (d *delayed) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.queue, d.bytes = nil, 0
	d.room.Broadcast()
}

// carry sends what is due until the connection ends.
func (d *delayed) carry() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		p, wait, ok := d.next(time.Now())
		switch {
		case ok && wait <= 0:
			if _, err := d.Conn.Write(p.bytes); err != nil {
				d.fail(err)
				return
			}
			d.leave(len(p.bytes))
			continue
		case ok:
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-d.wake:
		case <-d.over:
			return
		}
	}
}

// next returns the first parcel and how long it still has to wait; if that is over, the queue does not have it any more.
func (d *delayed) next(now time.Time) (p parcel, wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return parcel{}, 0, false
	}
	p = d.queue[0]
	if wait = p.due.Sub(now); wait > 0 {
		return p, wait, true
	}
	d.queue[0] = parcel{}
	if d.queue = d.queue[1:]; len(d.queue) == 0 {
		d.queue = nil
	}
	return p, 0, true
}

// leave notes that so many bytes are sent.
func (d *delayed) leave(bytes int) {
	d.mu.Lock()
	d.bytes = max(0, d.bytes-bytes)
	d.mu.Unlock()
	d.room.Broadcast()
}

// far delays a connection to a peer, if there are delays.
func (p *peer) far(conn net.Conn) net.Conn {
	if p.t.options.Delay == nil {
		return conn
	}
	return newDelayed(conn, func(consensus.MemberID) time.Duration { return time.Duration(p.delay.Load()) })
}

// keepDistance notes how long messages to a peer take on purpose.
func (p *peer) keepDistance(m *consensus.Member) {
	if delay := p.t.options.Delay; delay != nil {
		p.delay.Store(int64(delay(*m)))
	}
}

// delayTo is how long what we answer to a member takes on purpose.
func (t *Transport) delayTo(id consensus.MemberID) time.Duration {
	if p := t.peer(id); p != nil {
		return time.Duration(p.delay.Load())
	}
	return t.options.Delay(consensus.Member{ID: id})
}

// meet notes who is at the other end of a connection that we accepted: so far what we sent on it was meant for a
// non-member.
func (t *Transport) meet(ctx context.Context, from consensus.MemberID) {
	if t.options.Delay == nil {
		return
	}
	if p, ok := grpcpeer.FromContext(ctx); ok {
		if address, ok := p.Addr.(delayedAddr); ok {
			address.conn.to.Store(uint64(from))
		}
	}
}

// delayedListener accepts connections from far away.
type delayedListener struct {
	net.Listener
	t *Transport
}

// Accept implements net.Listener.
func (l delayedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newDelayed(conn, l.t.delayTo), nil
}
