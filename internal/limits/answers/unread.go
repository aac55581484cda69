package answers

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/base/tlsconn"
)

const (
	// unreadTimeout is how long a client may read nothing of an answer: programs stop while their users read, and machines
	// sleep. Where others wait for the memory it is scarceUnreadTimeout.
	unreadTimeout       = 5 * time.Minute
	scarceUnreadTimeout = 30 * time.Second
	// sweepInterval is the time between two searches for unread answers, while any are being sent.
	sweepInterval = time.Second
)

// Sending notes that the answer was encoded in so many bytes, all that is left of it, and is being sent to its client. It
// returns false if the account need not follow its progress: the answer is small, or not for a client connection. Else the
// caller calls Taken after each part that the client has read, and Release after the last.
//
// gRPC keeps an answer until the client opens its window, however long that takes. An answer of which the client reads nothing
// for too long is given up with its connection: gRPC cannot end a call that has been answered.
func (r *Account) Sending(bytes int) bool {
	if !r.known {
		return false
	}
	conn := tlsconn.ConnOf(r.call)
	if conn == nil {
		return false
	}
	s, b := r.share, r.share.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.bytes == 0 {
		return false
	}
	if spare := s.bytes - int64(bytes); spare > 0 {
		b.take(s, spare)
		b.admit()
	}
	s.conn, s.moved = conn, time.Now()
	s.forget = context.AfterFunc(conn.Context(), s.release)
	b.unread.PushBack(&s.place, s)
	b.watch()
	return true
}

// Taken notes that the client has read a part.
func (r *Account) Taken() {
	s, b := r.share, r.share.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.place.List() == nil {
		return // the answer was given up
	}
	s.moved = time.Now()
	s.place.Remove()
	b.unread.PushBack(&s.place, s)
}

// watch searches for unread answers until no answer is being sent.
func (b *Budget) watch() {
	if b.sweeper != nil {
		return
	}
	b.sweeper = time.AfterFunc(sweepInterval, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sweeper = nil
		if b.sweep(time.Now()); b.unread.First() != nil {
			b.watch()
		}
	})
}

// sweep gives up the answers that are not read. Their bytes come back when gRPC has dropped them.
func (b *Budget) sweep(now time.Time) {
	timeout := unreadTimeout
	if b.waiting > 0 {
		timeout = scarceUnreadTimeout
	}
	for s := b.unread.First(); s != nil && now.Sub(s.moved) >= timeout; s = b.unread.First() {
		s.place.Remove()
		b.ended++
		go s.conn.Close() // Close may block on TLS's last record
	}
}
