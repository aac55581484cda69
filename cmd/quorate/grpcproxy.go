package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/quorate/quorate/internal/base/logpace"
	"github.com/quorate/quorate/internal/base/reload"
	"github.com/quorate/quorate/internal/base/tlsfiles"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/logging"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/rpc/grpcproxy"
	"github.com/quorate/quorate/internal/server/certs"
)

// runGRPCProxy runs the proxy of `quorate grpc-proxy start` until the context ends.
func runGRPCProxy(ctx context.Context, g *ctl.GRPCProxy, log *logging.Log) error {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, logpace.Writer(log.Logger, "grpc: ")))
	limit, err := memoryLimit(g.Memory, log.Logger)
	if err != nil {
		return err
	}
	shares := memory.DivideProxy(limit)
	memory.Govern(shares.Process())
	members, err := memberTLS(g, log.Logger)
	if err != nil {
		return err
	}
	keeper, err := proxyCerts(g, log.Logger)
	if err != nil {
		return err
	}
	proxy, err := grpcproxy.New(proxyOptions(g, members, shares, log.Logger))
	if err != nil {
		return err
	}
	served := make(chan error, 2)
	var listeners []net.Listener
	listen := func(address string, secure bool, protocols []string, bounded func(net.Listener, bool) net.Listener,
		serve func(net.Listener) error) error {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		if l = bounded(l, secure); secure {
			l = keeper.Listen(l, protocols)
		}
		listeners = append(listeners, l)
		go func() { served <- serve(l) }()
		return nil
	}
	err = listen(g.Clients.Listen, keeper != nil, certs.GRPCAndHTTP, proxy.Bounded, proxy.ServeClients)
	if err == nil {
		err = listenForMetrics(g, log.Logger, func(address string, secure bool) error {
			return listen(address, secure, certs.HTTP, proxy.BoundedMetrics, proxy.ServeMetrics)
		})
	}
	if err == nil {
		log.Info("started gRPC proxy", "address", g.Clients.Listen, "endpoints", g.Members.Endpoints,
			"memory-bytes", shares.Limit)
		tellSupervisor(log.Logger)
		select {
		case <-ctx.Done():
			log.Info("stop listening gRPC proxy client requests", "address", g.Clients.Listen)
		case err = <-served:
			served <- err
		}
	}
	for _, l := range listeners {
		_ = l.Close() // it may have failed already
	}
	for range listeners {
		err = errors.Join(err, <-served)
	}
	return errors.Join(err, proxy.Close())
}

// listenForMetrics serves at --metrics-addr, if that is set.
func listenForMetrics(g *ctl.GRPCProxy, logger *slog.Logger, listen func(address string, secure bool) error) error {
	address, secure, err := g.MetricsAddress()
	if err != nil || address == "" {
		return err
	}
	if err := listen(address, secure); err != nil {
		return fmt.Errorf("--metrics-addr: %w", err)
	}
	logger.Info("gRPC proxy listening for metrics", "address", g.Clients.Metrics)
	return nil
}

func proxyOptions(g *ctl.GRPCProxy, members *tls.Config, shares memory.ProxyShares, logger *slog.Logger) grpcproxy.Options {
	m := &g.Members
	return grpcproxy.Options{
		Members: grpcproxy.Members{
			Endpoints: m.Endpoints, SyncInterval: m.SyncInterval, TLS: members, KeepAliveTime: m.KeepAliveTime,
			KeepAliveTimeout: m.KeepAliveTimeout, PermitWithoutStream: m.PermitWithoutStream, MaxRecvBytes: m.MaxRecvBytes,
		},
		Clients: grpcproxy.Clients{
			KeepAliveMinTime: g.Clients.MinPing, KeepAliveInterval: g.Clients.Ping, KeepAliveTimeout: g.Clients.PingTimeout,
			MaxConcurrentStreams: g.Clients.MaxStreams, MaxSendBytes: g.Members.MaxSendBytes,
		},
		Naming: grpcproxy.Naming{URL: g.AdvertiseURL, Prefix: g.ResolverPrefix,
			TTL: time.Duration(g.ResolverTTL) * time.Second},
		Memory: shares, Namespace: g.Namespace, LogCalls: g.LogCalls, Profiles: g.Profiles, Logger: logger,
	}
}

// proxyCerts are those that clients are shown; nil: they connect without TLS.
func proxyCerts(g *ctl.GRPCProxy, logger *slog.Logger) (*certs.Keeper, error) {
	if g.Clients.TLS.CertFile == "" && !g.Clients.TLS.Auto {
		return nil, nil
	}
	c := config.Default()
	own, err := config.ParseURL("https://" + g.Clients.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen-addr: %w", err)
	}
	c.Listen.ClientURLs = []config.URL{own}
	c.Storage.DataDir = g.Clients.DataDir
	versions := map[string]config.TLSVersion{"TLS1.2": tls.VersionTLS12, "TLS1.3": tls.VersionTLS13}
	c.TLS = config.TLSSettings{Client: g.Clients.TLS, SelfSignedValidity: int(g.Clients.Years), CipherSuites: g.Clients.Suites,
		MinVersion: versions[g.Clients.Min], MaxVersion: versions[g.Clients.Max]}
	return certs.Open(certs.Client, &c, logger)
}

// memberTLS says how to connect to the members; nil: as their URLs say.
func memberTLS(g *ctl.GRPCProxy, logger *slog.Logger) (*tls.Config, error) {
	if g.Members.CertFile == "" && g.Members.AuthorityFile == "" && !g.Members.SkipVerify {
		return nil, nil
	}
	c, err := tlsfiles.Dialing(reload.File{Flag: "--cacert", Path: g.Members.AuthorityFile},
		reload.File{Flag: "--cert", Path: g.Members.CertFile}, reload.File{Flag: "--key", Path: g.Members.KeyFile})
	if err != nil {
		return nil, err
	}
	if c.InsecureSkipVerify = g.Members.SkipVerify; g.Members.SkipVerify {
		logger.Warn("--insecure-skip-tls-verify was given: the certificates of the members are not checked")
	}
	if g.Members.CertFile == "" {
		return c, nil
	}
	first := c.Certificates[0]
	if name := first.Leaf.Subject.CommonName; name != "" {
		return nil, fmt.Errorf("--cert %s: cert has non empty Common Name (%s): members would take all clients without a "+
			"token for that user", g.Members.CertFile, name)
	}
	// Files that were replaced count from the next connection on; those that cannot be read, or name a user, never.
	c.Certificates = nil
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		now, err := tls.LoadX509KeyPair(g.Members.CertFile, g.Members.KeyFile)
		if err == nil && now.Leaf.Subject.CommonName == "" {
			return &now, nil
		}
		logger.Warn("--cert and --key cannot be used as they are now: members are shown those from before", "err", err)
		return &first, nil
	}
	return c, nil
}
