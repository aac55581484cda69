package server

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/rpc/front"
	"github.com/quorate/quorate/internal/rpc/pingack"
	"github.com/quorate/quorate/internal/rpc/portmux"
	"github.com/quorate/quorate/internal/server/certs"
)

// clientPorts are the ports of clients, and the gRPC and HTTP servers behind them.
//
//	listen --> (lent to a startupServer) --> serve --> drain or close
type clientPorts struct {
	cfg      *config.Config
	logger   *slog.Logger
	limits   connLimits
	budgets  *budgets
	certs    *certs.Keeper   // nil: no client URL is encrypted
	stopping context.Context // ended when the process is to stop: that servers end is expected then

	listeners []net.Listener
	plain     []plainListener
	spans     spans
	grpc      grpcServer // nil before serve
	https     []*http.Server
	silent    atomic.Uint64 // connections that were closed because newer ones had not said either what they want
	serving   sync.WaitGroup
}

// grpcServer is a *grpc.Server, or a *front.Server.
type grpcServer interface {
	Serve(net.Listener) error
	GracefulStop()
	Stop()
}

// calmed counts connections that were ended because of what their clients sent, and those that were not taken because their
// host abandons requests; grpc-go does not count them.
func (p *clientPorts) calmed() uint64 {
	if own, ok := p.grpc.(*front.Server); ok {
		return own.Calmed()
	}
	return 0
}

// ackingServer is a server of grpc-go whose answers to pings of bandwidth wait.
type ackingServer struct{ *grpc.Server }

// Serve implements grpcServer.
func (s ackingServer) Serve(l net.Listener) error { return s.Server.Serve(pingack.Listen(l)) }

func newClientPorts(
	stopping context.Context, cfg *config.Config, limits connLimits, budgets *budgets, logger *slog.Logger,
) *clientPorts {
	return &clientPorts{cfg: cfg, logger: logger, limits: limits, budgets: budgets, stopping: stopping}
}

// listen opens the ports before anything on disk is touched, so that a port in use harms nothing. No client is answered before
// serve.
func (p *clientPorts) listen() error {
	urls, open := p.cfg.Listen.ClientURLs, sockets(&p.cfg.Listen)
	for i, u := range urls {
		if slices.ContainsFunc(urls[:i], func(v config.URL) bool { return samePort(u, v) }) {
			continue
		}
		l, err := listen(p.stopping, open, u)
		if err != nil {
			return fmt.Errorf("--listen-client-urls %s: %w", u, err)
		}
		p.listeners = append(p.listeners, newRelay(p.secured(p.bounded(l, u, urls[i+1:]), u, urls[i+1:])))
	}
	for _, row := range []struct {
		flag string
		urls []config.URL
		of   httpPort
	}{
		{"--listen-client-http-urls", p.cfg.Listen.ClientHTTPURLs, httpPort{"HTTP clients", p.limits.http, p.budgets.held}},
		{"--listen-metrics-urls", p.cfg.Listen.MetricsURLs, httpPort{metricsPort, p.limits.metrics, p.budgets.metrics}},
		{"--listen-console-urls", p.cfg.Listen.ConsoleURLs, httpPort{consolePort, p.limits.console, p.budgets.held}},
	} {
		for _, u := range row.urls {
			l, err := listen(p.stopping, open, u)
			if err != nil {
				return fmt.Errorf("%s %s: %w", row.flag, u, err)
			}
			l = row.of.held.Listen(row.of.limit.Listen(l), admission.HTTPConnBytes)
			if u.Secure() {
				l = p.certs.Listen(l, certs.HTTP)
			}
			p.plain = append(p.plain, plainListener{newRelay(l), row.of.serves})
		}
	}
	return nil
}

// The ports without gRPC beside those of HTTP clients.
const (
	metricsPort = "metrics and health"
	consolePort = "the console"
)

// httpPort is what listeners without gRPC serve, and what bounds their connections.
type httpPort struct {
	serves string
	limit  *admission.HostBound
	held   *admission.Ledger
}

// bounded bounds the connections of a client listener.
func (p *clientPorts) bounded(l net.Listener, u config.URL, others []config.URL) net.Listener {
	bytes := int64(admission.ConnBytes)
	if u.Secure() || slices.ContainsFunc(others, func(v config.URL) bool { return samePort(u, v) }) {
		bytes = admission.TLSConnBytes
	}
	return p.budgets.held.Listen(p.limits.clients.Listen(l), bytes)
}

// plainListener is one without gRPC.
type plainListener struct {
	net.Listener
	serves string
}

func listen(ctx context.Context, sockets *net.ListenConfig, u config.URL) (net.Listener, error) {
	l, err := sockets.Listen(ctx, u.Network(), u.Address)
	if u.Network() == "unix" && errors.Is(err, syscall.EADDRINUSE) && abandoned(u.Address) {
		if err := os.Remove(u.Address); err != nil {
			return nil, err
		}
		return sockets.Listen(ctx, u.Network(), u.Address)
	}
	return l, err
}

// abandoned reports whether a socket file has no process behind it any more, as after kill -9.
func abandoned(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		return conn.Close() != nil
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// secured encrypts a client listener if its URL asks for that. If one of the other URLs names
// the same port, the listener serves both kinds.
func (p *clientPorts) secured(l net.Listener, u config.URL, others []config.URL) net.Listener {
	switch {
	case slices.ContainsFunc(others, func(v config.URL) bool { return samePort(u, v) }):
		return p.certs.ListenEither(l, p.protocols())
	case u.Secure():
		return p.certs.Listen(l, p.protocols())
	}
	return l
}

// protocols are what the client URLs speak.
func (p *clientPorts) protocols() []string {
	if len(p.cfg.Listen.ClientHTTPURLs) > 0 {
		return certs.GRPC
	}
	return certs.GRPCAndHTTP
}

// samePort tells whether two URLs name one port, with and without encryption.
func samePort(u, v config.URL) bool {
	return u.Secure() != v.Secure() && u.Network() == v.Network() && u.Address == v.Address &&
		!strings.HasSuffix(u.Address, ":0")
}

// all are the listeners of every kind.
func (p *clientPorts) all() []net.Listener {
	all := slices.Clone(p.listeners)
	for _, l := range p.plain {
		all = append(all, l.Listener)
	}
	return all
}

// addresses are where clients are served.
func (p *clientPorts) addresses() []net.Addr {
	var addresses []net.Addr
	for _, l := range p.listeners {
		addresses = append(addresses, l.Addr())
	}
	return addresses
}

// serve begins to answer clients. handler is for their HTTP requests, metrics for the metrics URLs, console for those of the
// console.
func (p *clientPorts) serve(server grpcServer, handler, metrics, console http.Handler) {
	p.grpc = server
	for _, l := range p.listeners {
		p.serveClients(l, handler)
		p.logger.Info("serving client traffic", "address", l.Addr().String())
	}
	for _, l := range p.plain {
		switch l.serves {
		case metricsPort:
			p.serveHTTP(l, metrics)
		case consolePort:
			p.serveHTTP(l, console)
		default:
			p.serveHTTP(l, handler)
		}
		p.logger.Info("serving "+l.serves, "address", l.Addr().String())
	}
}

// serveClients serves gRPC and HTTP on one listener, or gRPC alone if HTTP clients have URLs of their own.
func (p *clientPorts) serveClients(l net.Listener, handler http.Handler) {
	if len(p.cfg.Listen.ClientHTTPURLs) > 0 {
		p.serving.Go(func() { p.ended("grpc server", p.grpc.Serve(l)) })
		return
	}
	mux := portmux.New(l)
	mux.CountSilent(&p.silent)
	p.serving.Go(func() { p.ended("client listener", mux.Serve()) })
	p.serving.Go(func() { p.ended("grpc server", p.grpc.Serve(mux.GRPC())) })
	p.serveHTTP(mux.HTTP(), handler)
}

// idleTimeout is how long an HTTP connection may be kept without a request.
const idleTimeout = 3 * time.Minute

// maxHTTPHeaderBytes bounds the headers of a request; browsers send cookies.
const maxHTTPHeaderBytes = 16 << 10

func (p *clientPorts) serveHTTP(l net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxHTTPHeaderBytes,
		IdleTimeout: idleTimeout, ConnContext: tlsconn.ConnContext,
		ErrorLog: log.New(logpace.Writer(p.logger, ""), "", 0)}
	p.https = append(p.https, server)
	p.serving.Go(func() {
		if err := server.Serve(admission.Yielding(l)); !errors.Is(err, http.ErrServerClosed) {
			p.ended("http server", err)
		}
	})
}

// ended logs a listener that failed under us; when the server stops, it is meant to end.
func (p *clientPorts) ended(what string, err error) {
	if err != nil && p.stopping.Err() == nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		p.logger.Error(what+" failed", "err", err)
	}
}

// drain takes no more connections and lets the calls under way end.
func (p *clientPorts) drain() {
	for _, l := range p.listeners {
		if err := ignoreClosed(l.Close()); err != nil {
			p.logger.Warn("could not close a client port", "err", err)
		}
	}
	p.grpc.GracefulStop()
}

// close ends everything; it may be called in any state.
func (p *clientPorts) close() error {
	var stopping sync.WaitGroup
	if p.grpc != nil {
		stopping.Go(p.stopGRPC)
	}
	for _, server := range p.https {
		stopping.Go(func() { stopHTTP(server) })
	}
	stopping.Wait()
	var err error
	for _, l := range p.all() {
		err = errors.Join(err, ignoreClosed(l.Close()))
	}
	for _, server := range p.https {
		err = errors.Join(err, server.Close())
	}
	p.serving.Wait()
	p.spans.stop(gracePeriod)
	return err
}

// gracePeriod is how long running requests may go on when the server stops.
const gracePeriod = 500 * time.Millisecond

func (p *clientPorts) stopGRPC() {
	ended := make(chan struct{})
	go func() {
		p.grpc.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(gracePeriod):
		p.grpc.Stop()
		<-ended
	}
}

// stopHTTP takes no more requests, and lets those that run end for a while.
func stopHTTP(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), gracePeriod)
	defer cancel()
	_ = server.Shutdown(ctx) // what goes on is cut off by Close
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
