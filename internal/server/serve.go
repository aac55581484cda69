package server

import (
	"context"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/member/raising"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/rpc/h2"
)

// serve answers clients. Requests wait for a leader, or fail by their deadlines, until the cluster is up.
func (s *Server) serve(context.Context, Options) error {
	backups, room, err := s.backupPlace()
	if err != nil {
		return err
	}
	logins, err := openLogin(&s.cfg, s.budgets.Tokens, s.logger)
	if err != nil {
		return err
	}
	if err := s.clients.spans.start(s.ctx, &s.cfg.Tracing, s.logger); err != nil {
		return err
	}
	s.budgets.held.AlsoScarce(s.member.Hub().Scarce) // events that wait for watchers
	if s.audit != nil {
		s.audit.Run()
	}
	s.watchKeys()
	observer, collector := s.newObserver()
	s.services = rpc.New(rpc.Options{
		Member:          s.member,
		Membership:      s.member.Membership(),
		Clients:         s.member.Clients(),
		Login:           logins,
		Certificates:    s.cfg.TLS.Client.ClientCertAuth,
		Logger:          s.logger,
		ElectionTimeout: s.cfg.Consensus.ElectionTimeout,
		ConnectedSince:  s.transport.ConnectedSince,
		StrictReconfig:  s.cfg.Consensus.StrictReconfigCheck,
		Limits: rpc.Limits{
			MaxRequestBytes:      s.cfg.Limits.MaxRequestBytes,
			MaxTxnOps:            s.cfg.Limits.MaxTxnOps,
			MaxConcurrentStreams: s.cfg.Limits.MaxConcurrentStreams,
			QuotaBytes:           s.quotaBytes(),
			ReportedQuotaBytes:   s.cfg.ReportedQuota(),
		},
		Answers:               s.budgets.answers,
		Held:                  s.budgets.held,
		Renewals:              s.budgets.renewals,
		WatchProgressInterval: s.cfg.WatchProgressNotifyInterval,
		SlowRequest:           s.cfg.Monitoring.WarningRequestDuration,
		Tracer:                s.clients.spans.tracer(),
		Audit:                 s.audit,
		TempDir:               backups,
		RefusesPlace:          s.refusesPlace,
		Keys:                  s.keyTools(),
		AllowedHosts:          s.cfg.HTTP.HostWhitelist,
		AllowedOrigins:        s.cfg.HTTP.CORS,
		Stalled:               s.member.Stalled,
		Superseded:            s.member.Superseded,
		Troubles:              s.member.Alarms,
		Defragment:            s.defragment,
		LowDisk:               s.lowDisk,
		Observe:               observer.Observe,
		Collect:               collector.Observations,
		CollectTop:            collector.Top,
		Room:                  room,
		BackupBytes:           s.budgets.Backups,
		DeletionBytes:         s.budgets.Deletion,
		TopBytes:              s.budgets.Top,
		State:                 s.budgets.State,
		ExtensiveMetrics:      s.cfg.Monitoring.Metrics == "extensive",
	})
	s.collector.Store(collector) // which asks the services, too
	server := s.newGRPCServer()
	s.wg.Go(func() { s.services.KeepQuota(s.ctx) })
	s.wg.Go(func() { s.services.KeepCounting(s.ctx) })
	s.wg.Go(func() { observer.Run(s.ctx) })
	return s.serveWith(server)
}

// quotaBytes is how large the store may become; -1: without a bound.
func (s *Server) quotaBytes() int64 {
	if quota, limited := s.cfg.Quota(); limited {
		return quota
	}
	return -1
}

// serveWith serves gRPC by a server, and HTTP beside it.
func (s *Server) serveWith(server grpcServer) error {
	registry := prometheus.NewRegistry()
	s.register(registry)
	api := s.services.HTTP()
	shown, err := s.consoleHandler()
	if err != nil {
		return err
	}
	s.clients.serve(server, api.Handler(registry, s.addHandlers), api.MetricsHandler(registry), shown)
	return nil
}

// newGRPCServer makes what speaks gRPC with clients.
func (s *Server) newGRPCServer() grpcServer {
	if s.cfg.GRPCTransport == config.TransportOwn {
		k := &s.cfg.Keepalive
		pings := h2.Pings{MinPing: k.MinTime, Interval: k.Interval, Timeout: k.Timeout}
		server := s.services.NewFront(pings, s.clients.spans.calls())
		s.services.RegisterWith(server)
		return server
	}
	options := s.keepalive()
	if calls := s.clients.spans.calls(); calls != nil {
		options = append(options, grpc.StatsHandler(calls))
	}
	server := s.services.NewGRPCServer(options...)
	s.services.Register(server)
	return ackingServer{server}
}

func (s *Server) keepalive() []grpc.ServerOption {
	options := []grpc.ServerOption{grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime: s.cfg.Keepalive.MinTime,
	})}
	if s.cfg.Keepalive.Interval > 0 && s.cfg.Keepalive.Timeout > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: s.cfg.Keepalive.Interval, Timeout: s.cfg.Keepalive.Timeout,
		}))
	}
	return options
}

// addHandlers adds what HTTP clients have beside metrics and health.
func (s *Server) addHandlers(mux *http.ServeMux) {
	if s.cfg.HTTP.Gateway {
		mux.Handle("/v3/", s.services.Gateway())
	}
	if !s.cfg.Monitoring.EnablePprof {
		return
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}

// verdict is what the member's doctor finds.
func (s *Server) verdict() (v raising.Verdict) {
	if observer := s.observer.Load(); observer != nil {
		v.Judged, v.Finding = observer.Verdict()
	}
	return v
}

// defragment gives back the space of deleted keys. Nothing waits for it: the store does the same by itself, later.
func (s *Server) defragment(ctx context.Context) error { return s.member.Defragment(ctx) }
