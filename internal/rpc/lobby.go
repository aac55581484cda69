package rpc

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// maxLobby is how many connections may be between accept and their first request byte, TLS handshakes included.
const maxLobby = 1024

// lobby holds the connections of which nobody knows yet what they want. When one comes too many, the one that has waited
// longest is closed: whoever means it has said so within milliseconds, and a flood of silent ones keeps nobody out for long.
type lobby struct {
	mu      sync.Mutex
	waiting list.List // of net.Conn, oldest first
	closed  *atomic.Uint64
}

// enter takes a connection in; leave must be called when it is known what it is.
func (l *lobby) enter(conn net.Conn) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len() >= maxLobby {
		oldest := l.waiting.Remove(l.waiting.Front()).(net.Conn)
		l.closed.Add(1)
		go oldest.Close() // it may be in the middle of a handshake
	}
	at := l.waiting.PushBack(conn)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting.Remove(at) // nothing, if it was closed
	}
}
