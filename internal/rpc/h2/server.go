package h2

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves connections until it is stopped.
type Server struct {
	options Options

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	draining  bool
	stop      chan struct{}
	serving   sync.WaitGroup

	calmed atomic.Uint64
}

// Calmed counts the connections that were ended because their clients sent too much that brought nothing forward.
func (s *Server) Calmed() uint64 { return s.calmed.Load() }

// New makes a Server.
func New(options Options) *Server {
	s := &Server{options: options, stop: make(chan struct{}),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}}
	s.serving.Go(s.watch)
	return s
}

// Serve takes connections until the listener fails, or the server stops, which gives net.ErrClosed.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		l.Close()
		return net.ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	for {
		c, err := l.Accept()
		if temporary, ok := err.(interface{ Temporary() bool }); ok && temporary.Temporary() {
			select { // out of file descriptors, mostly: other connections may end
			case <-time.After(acceptPause):
				continue
			case <-s.stop:
				return net.ErrClosed
			}
		}
		if err != nil {
			return err
		}
		k := newConn(s, c)
		if hosts := s.options.Hosts; hosts != nil && !hosts.Admits(c.RemoteAddr()) {
			s.calmed.Add(1)
			c.Close()
			continue
		}
		if !s.enter(k) {
			c.Close()
			continue
		}
		go func() {
			defer s.serving.Done()
			k.serve()
			s.mu.Lock()
			delete(s.conns, k)
			s.mu.Unlock()
		}()
	}
}

// acceptPause is how long no connection is taken after one could not be.
const acceptPause = 5 * time.Millisecond

func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.conns[c] = struct{}{}
	s.serving.Add(1)
	return true
}

// Drain takes no more connections and requests, and returns once those under way have been answered.
func (s *Server) Drain() {
	for _, c := range s.close() {
		c.goAway()
	}
	s.serving.Wait()
}

// Stop ends all connections, at once: an encrypted one whose client does not read takes seconds to close.
func (s *Server) Stop() {
	var ending sync.WaitGroup
	for _, c := range s.close() {
		ending.Go(c.end)
	}
	ending.Wait()
	s.serving.Wait()
}

func (s *Server) close() (conns []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		close(s.stop)
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// watchInterval is how often the connections are looked at that say nothing.
const watchInterval = 5 * time.Second

// watch finds the connections whose clients have gone, and pings those that say nothing for long.
func (s *Server) watch() {
	every := watchInterval
	if s.beats() {
		every = min(every, s.options.Interval, s.options.Timeout)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-ticker.C:
			s.look(now, every)
		}
	}
}

// look is what watch does; passed is the time since it did so last.
func (s *Server) look(now time.Time, passed time.Duration) {
	for _, c := range s.all() {
		c.floods.forgive(passed)
		c.probe(now)
		c.tend(now, passed)
		if s.beats() {
			c.beat(now)
		}
	}
}

// beats reports whether clients that say nothing are pinged.
func (s *Server) beats() bool { return s.options.Interval > 0 && s.options.Timeout > 0 }

func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// probe ends a connection whose client has gone, once after it was read last.
func (c *conn) probe(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.raw == nil || c.ended || c.probed.Equal(c.lastRead) || now.Sub(c.lastRead) < time.Second {
		return
	}
	c.probed = c.lastRead
	if atEnd(c.raw) {
		c.abort()
	}
}

func (c *conn) beat(now time.Time) {
	o := &c.server.options
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended || !c.hello:
	case !c.pinged.IsZero() && now.Sub(c.pinged) > o.Timeout:
		c.abort()
	case c.pinged.IsZero() && now.Sub(c.lastRead) > o.Interval:
		c.pinged = now
		c.out = appendPing(c.out, 0, make([]byte, 8))
		c.flush()
	}
}
