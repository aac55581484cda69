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
	encrypted := slices.Concat(s.cfg.ListenClientURLs, s.cfg.ListenClientHTTPURLs, s.cfg.ListenMetricsURLs)
	if slices.ContainsFunc(encrypted, config.URL.Secure) {
		s.clientCerts, err = certs.Open(certs.Client, &s.cfg, s.logger)
	}
	return err
}

// securedClients encrypts a client listener if its URL asks for that. If one of the other URLs is its twin, the
// listener serves both kinds.
func (s *Server) securedClients(l net.Listener, u config.URL, others []config.URL) net.Listener {
	switch {
	case slices.ContainsFunc(others, func(v config.URL) bool { return twins(u, v) }):
		return s.clientCerts.ListenEither(l, certs.GRPCAndHTTP)
	case u.Secure():
		return s.clientCerts.Listen(l, certs.GRPCAndHTTP)
	}
	return l
}

// twins tells whether two URLs name one port, with and without encryption.
func twins(u, v config.URL) bool {
	return u.Secure() != v.Secure() && u.Network() == v.Network() && u.Address == v.Address &&
		!strings.HasSuffix(u.Address, ":0")
}

// listenPeers opens the peer URLs.
func (s *Server) listenPeers() (open []net.Listener, err error) {
	for _, u := range s.cfg.ListenPeerURLs {
		secure := u.Secure()
		u.Scheme = strings.TrimSuffix(u.Scheme, "s")
		l, err := transport.Listen(u.String(), nil)
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
