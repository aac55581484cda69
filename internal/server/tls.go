package server

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/transport"
)

// openCerts reads all certificates before any port is opened. Those of peers are needed to dial even where nothing
// that is listened on is encrypted.
func (s *Server) openCerts(context.Context, Options) error {
	var err error
	if s.peerCerts, err = certs.Open(certs.Peer, &s.cfg, s.logger); err != nil {
		return err
	}
	if servesTLS(&s.cfg) {
		s.clients.certs, err = certs.Open(certs.Client, &s.cfg, s.logger)
	}
	if err == nil {
		watched := s.expiries()
		s.wg.Go(func() { watched.watch(s.ctx) })
	}
	return err
}

// servesTLS reports whether clients are served by TLS anywhere.
func servesTLS(c *config.Config) bool {
	return slices.ContainsFunc(slices.Concat(c.Listen.ClientURLs, c.Listen.ClientHTTPURLs, c.Listen.MetricsURLs,
		c.Listen.ConsoleURLs),
		config.URL.Secure)
}

func (s *Server) expiries() expiries { return expiries{s.clients.certs, s.peerCerts, s.logger} }

// listenPeers opens the peer URLs.
func (s *Server) listenPeers() (open []net.Listener, err error) {
	for _, u := range s.cfg.Listen.PeerURLs {
		secure := u.Secure()
		u.Scheme = strings.TrimSuffix(u.Scheme, "s")
		l, err := transport.ListenWith(s.ctx, sockets(&s.cfg.Listen), u.String(), nil)
		if err != nil {
			closeAll(open)
			return nil, err
		}
		l = listenPeer(l, s.conns.peers)
		if secure {
			l = s.peerCerts.Listen(l, certs.GRPC)
		}
		open = append(open, slotListener{l})
	}
	return open, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}
