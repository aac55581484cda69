package server

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// startupServer answers HTTP clients of a process that is no member yet: it is alive, not ready, and says why. Clients of
// gRPC are turned away at once, so that they try another member.
type startupServer struct {
	text    atomic.Pointer[string]
	servers []*http.Server
	serving sync.WaitGroup
}

func (s *Server) serveStartup() *startupServer {
	startup := &startupServer{}
	startup.say("is starting")
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	for _, path := range []string{"/readyz", "/health", "/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "[-]member failed: "+*startup.text.Load(), http.StatusServiceUnavailable)
		})
	}
	for _, l := range s.clients.all() {
		lent, ok := l.(*relay)
		if !ok {
			continue
		}
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		startup.servers = append(startup.servers, server)
		borrowed := lent.lend()
		startup.serving.Go(func() {
			if err := server.Serve(borrowed); !errors.Is(err, http.ErrServerClosed) {
				s.clients.ended("http server", err)
			}
		})
	}
	return startup
}

// say tells what the process does on its way to be a member; the text begins with a verb.
func (u *startupServer) say(text string) { u.sayAll("this process is no member yet: it " + text) }

// sayLost tells why the process can not be the member any more whose directory it has.
func (u *startupServer) sayLost(text string) { u.sayAll("this process is no member any more: " + text) }

func (u *startupServer) sayAll(text string) { u.text.Store(&text) }

func (u *startupServer) close() {
	for _, server := range u.servers {
		_ = server.Close()
	}
	u.serving.Wait()
}

// relay is a listener that can be lent: what it accepts goes to the borrower, and to its owner again once the borrower has
// closed what it was lent.
type relay struct {
	net.Listener
	once   sync.Once
	pumps  atomic.Bool
	conns  chan accepted
	closed chan struct{}
	closes sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func newRelay(l net.Listener) *relay {
	return &relay{Listener: l, conns: make(chan accepted), closed: make(chan struct{})}
}

// lend begins to pass connections on; it may be called again when the last borrower has closed.
func (r *relay) lend() net.Listener {
	r.pumps.Store(true)
	r.once.Do(func() { go r.pump() })
	return &loan{relay: r, done: make(chan struct{})}
}

func (r *relay) pump() {
	for {
		conn, err := r.Listener.Accept()
		select {
		case r.conns <- accepted{conn, err}:
		case <-r.closed:
			if conn != nil {
				_ = conn.Close()
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept implements net.Listener.
func (r *relay) Accept() (net.Conn, error) {
	if !r.pumps.Load() {
		return r.Listener.Accept()
	}
	select {
	case a := <-r.conns:
		return a.conn, a.err
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *relay) Close() error {
	r.closes.Do(func() { close(r.closed) })
	return r.Listener.Close()
}

// loan is what a borrower has of a relay.
type loan struct {
	*relay
	done   chan struct{}
	closes sync.Once
}

// Accept implements net.Listener.
func (l *loan) Accept() (net.Conn, error) {
	select {
	case a := <-l.conns:
		return a.conn, a.err
	case <-l.done:
	case <-l.relay.closed:
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener: the relay stays open.
func (l *loan) Close() error {
	l.closes.Do(func() { close(l.done) })
	return nil
}
