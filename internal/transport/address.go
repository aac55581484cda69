package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"time"
)

// address is a parsed peer URL.
type address struct {
	network string // "tcp" or "unix"
	target  string
	secure  bool
}

// parseURL understands http://host:port, https://host:port, unix://path and unixs://path.
func parseURL(raw string) (address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return address{}, fmt.Errorf("%w %q: %w", ErrBadURL, raw, err)
	}
	switch u.Scheme {
	case "http", "https":
		if u.Port() == "" {
			return address{}, fmt.Errorf("%w %q: no port", ErrBadURL, raw)
		}
		if u.Path != "" && u.Path != "/" {
			return address{}, fmt.Errorf("%w %q: a peer URL has no path", ErrBadURL, raw)
		}
		return address{network: "tcp", target: u.Host, secure: u.Scheme == "https"}, nil
	case "unix", "unixs":
		// unix://a.sock names a file beside us, unix:///a.sock one at the root.
		path := u.Host + u.Path
		if path == "" {
			return address{}, fmt.Errorf("%w %q: no socket path", ErrBadURL, raw)
		}
		return address{network: "unix", target: path, secure: u.Scheme == "unixs"}, nil
	}
	return address{}, fmt.Errorf("%w %q: scheme %q is none of http, https, unix, unixs", ErrBadURL, raw, u.Scheme)
}

// Listen opens the listener that a peer URL asks for. A https URL needs a server TLS configuration.
func Listen(raw string, serverTLS *tls.Config) (net.Listener, error) {
	return ListenWith(context.Background(), &net.ListenConfig{}, raw, serverTLS)
}

// ListenWith is Listen with options of the socket.
func ListenWith(ctx context.Context, sockets *net.ListenConfig, raw string, serverTLS *tls.Config) (net.Listener, error) {
	a, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	if a.secure && serverTLS == nil {
		return nil, fmt.Errorf("%w: %q", ErrNeedsTLS, raw)
	}
	l, err := sockets.Listen(ctx, a.network, a.target)
	if a.network == "unix" && errors.Is(err, syscall.EADDRINUSE) && !answers(a) {
		// The socket file outlived its process. No process listens, so none misses it.
		if err = os.Remove(a.target); err == nil {
			l, err = sockets.Listen(ctx, a.network, a.target)
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: %q", ErrAddressUsed, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("transport: listen on %q: %w", raw, err)
	}
	if a.secure {
		l = tls.NewListener(l, withHTTP2(serverTLS))
	}
	return l, nil
}

func answers(a address) bool {
	c, err := net.DialTimeout(a.network, a.target, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// dialURL opens a connection to a peer URL.
func dialURL(ctx context.Context, raw string, clientTLS *tls.Config, timeout time.Duration) (net.Conn, error) {
	a, err := parseURL(raw)
	if err != nil {
		return nil, err
	}
	if a.secure && clientTLS == nil {
		return nil, fmt.Errorf("%w: %q", ErrNeedsTLS, raw)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := dialTarget(ctx, a.network, a.target)
	if err != nil || !a.secure {
		return conn, err
	}
	config := withHTTP2(clientTLS)
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(a.target)
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("transport: TLS handshake with %q: %w", raw, err)
	}
	return secured, nil
}

// withHTTP2 returns a copy of config that offers HTTP/2, as gRPC demands.
func withHTTP2(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	return config
}
