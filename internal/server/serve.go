package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/rpc/portmux"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// listenClients opens the client ports before anything on disk is touched, so that a port in use harms nothing. Nobody
// is answered before serve.
func (s *Server) listenClients(context.Context, Options) error {
	urls := s.cfg.ListenClientURLs
	for i, u := range urls {
		if slices.ContainsFunc(urls[:i], func(v config.URL) bool { return twins(u, v) }) {
			continue
		}
		l, err := listen(u)
		if err != nil {
			return fmt.Errorf("--listen-client-urls %s: %w", u, err)
		}
		s.clients = append(s.clients, newRelay(s.securedClients(s.conns.clients.Listen(l), u, urls[i+1:])))
	}
	for i, u := range slices.Concat(s.cfg.ListenClientHTTPURLs, s.cfg.ListenMetricsURLs) {
		l, err := listen(u)
		if err != nil {
			return fmt.Errorf("--listen-client-http-urls or --listen-metrics-urls %s: %w", u, err)
		}
		metrics, bound := i >= len(s.cfg.ListenClientHTTPURLs), s.conns.http
		if metrics {
			bound = s.conns.metrics
		}
		l = bound.Listen(l)
		if u.Secure() {
			l = s.clientCerts.Listen(l, certs.HTTP)
		}
		s.plain = append(s.plain, plainListener{newRelay(l), metrics})
	}
	return nil
}

// plainListener is one without gRPC.
type plainListener struct {
	net.Listener
	metrics bool // and without anything but metrics and health
}

func listen(u config.URL) (net.Listener, error) {
	l, err := net.Listen(u.Network(), u.Address)
	if u.Network() == "unix" && errors.Is(err, syscall.EADDRINUSE) && abandoned(u.Address) {
		if err := os.Remove(u.Address); err != nil {
			return nil, err
		}
		return net.Listen(u.Network(), u.Address)
	}
	return l, err
}

// abandoned reports whether a socket file has nobody behind it any more, as after kill -9.
func abandoned(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		return conn.Close() != nil
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// serve answers clients. Requests wait for a leader, or fail by their deadlines, until the cluster is up.
func (s *Server) serve(context.Context, Options) error {
	quota, limited := s.cfg.Quota()
	if !limited {
		quota = -1
	}
	// What a backup that was killed leaves there is removed at the next start.
	backups := filepath.Join(s.cfg.DataDir, "member", snapshot.WorkDir)
	if err := os.MkdirAll(backups, 0o700); err != nil {
		return fmt.Errorf("--data-dir %s: %w", s.cfg.DataDir, bare(err))
	}
	s.services = rpc.New(rpc.Options{
		Member:          s.member,
		Membership:      s.member,
		Clients:         s.member,
		Logger:          s.logger,
		ElectionTimeout: s.cfg.ElectionTimeout,
		ConnectedSince:  s.transport.ConnectedSince,
		StrictReconfig:  s.cfg.StrictReconfigCheck,
		Limits: rpc.Limits{
			MaxRequestBytes:      s.cfg.MaxRequestBytes,
			MaxTxnOps:            s.cfg.MaxTxnOps,
			MaxConcurrentStreams: s.cfg.MaxConcurrentStreams,
			QuotaBytes:           quota,
			ReportedQuotaBytes:   s.cfg.ReportedQuota(),
		},
		Answers:               s.answers,
		WatchProgressInterval: s.cfg.WatchProgressNotifyInterval,
		SlowRequest:           s.cfg.WarningUnaryRequestDuration,
		TempDir:               backups,
		AllowedHosts:          s.cfg.HostWhitelist,
		AllowedOrigins:        s.cfg.CORS,
		Stalled:               s.member.Stalled,
		Superseded:            s.member.Superseded,
		ForeignEpochs:         s.member.ForeignEpochs,
		Defragment:            s.defragment,
		DiskLow:               s.reserve.Low,
		ExtensiveMetrics:      s.cfg.Metrics == "extensive",
	})
	s.grpc = s.services.NewGRPCServer(s.keepalive()...)
	s.services.Register(s.grpc)
	registry := prometheus.NewRegistry()
	s.register(registry)
	handler, metrics := s.services.HTTP().Handler(registry, s.addPprof), s.services.HTTP().MetricsHandler(registry)
	for _, l := range s.clients {
		s.serveClients(l, handler)
		s.logger.Info("serving client traffic", "address", l.Addr().String())
	}
	for _, l := range s.plain {
		if l.metrics {
			s.serveHTTP(l, metrics)
			s.logger.Info("serving metrics and health", "address", l.Addr().String())
			continue
		}
		s.serveHTTP(l, handler)
		s.logger.Info("serving HTTP clients", "address", l.Addr().String())
	}
	return nil
}

// serveClients serves gRPC and HTTP on one listener, or gRPC alone if HTTP clients have URLs of their own.
func (s *Server) serveClients(l net.Listener, handler http.Handler) {
	if len(s.cfg.ListenClientHTTPURLs) > 0 {
		s.wg.Go(func() { s.ended("grpc server", s.grpc.Serve(l)) })
		return
	}
	mux := portmux.New(l)
	mux.CountSilent(&s.silent)
	s.muxes = append(s.muxes, mux)
	s.wg.Go(func() { s.ended("client listener", mux.Serve()) })
	s.wg.Go(func() { s.ended("grpc server", s.grpc.Serve(mux.GRPC())) })
	s.serveHTTP(mux.HTTP(), handler)
}

// idleTimeout is how long an HTTP connection may be kept without a request.
const idleTimeout = 3 * time.Minute

func (s *Server) serveHTTP(l net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: idleTimeout, ConnContext: portmux.ConnContext,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn)} // the default one may block
	s.https = append(s.https, server)
	s.wg.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.ended("http server", err)
		}
	})
}

// ended logs a listener that failed under us; when the server stops, it is meant to end.
func (s *Server) ended(what string, err error) {
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, grpc.ErrServerStopped) {
		s.logger.Error(what+" failed", "err", err)
	}
}

func (s *Server) keepalive() []grpc.ServerOption {
	options := []grpc.ServerOption{grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime: s.cfg.GRPCKeepaliveMinTime,
	})}
	if s.cfg.GRPCKeepaliveInterval > 0 && s.cfg.GRPCKeepaliveTimeout > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: s.cfg.GRPCKeepaliveInterval, Timeout: s.cfg.GRPCKeepaliveTimeout,
		}))
	}
	return options
}

func (s *Server) addPprof(mux *http.ServeMux) {
	if !s.cfg.EnablePprof {
		return
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

// defragment gives back the space of deleted keys. Nothing waits for it: the store does the same by itself, later.
func (s *Server) defragment(ctx context.Context) error { return s.member.Defragment(ctx) }
