package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/ctl/command"
)

// road leads connections to the pods of a cluster. Its methods are for any goroutine.
type road struct {
	stops   []*stop // those that serve are the first ones
	reached int     // the first one that could be reached

	mu     sync.Mutex
	closed bool
	open   []io.Closer
}

// stop is a pod that the road leads to.
type stop struct {
	*pod
	tunnel     *tunnel
	encryption *tls.Config // nil: none
}

// road opens one to all running pods of a cluster. At least one pod can be reached by it.
func (k *Kubernetes) road(ctx context.Context, c *cluster, o *Options) (*road, error) {
	r := &road{}
	for _, p := range c.pods {
		encryption, err := k.encryption(ctx, p, o)
		if err != nil {
			return nil, err
		}
		t, err := k.tunnel(p.name)
		if err != nil {
			return nil, command.Usagef("%w", err)
		}
		r.stops = append(r.stops, &stop{p, t, encryption})
	}
	var failures []error
	forbidden := false
	for i, s := range r.stops {
		if _, err := s.tunnel.connection(ctx); err != nil {
			failures = append(failures, fmt.Errorf("forward a port of pod %s: %w", s.name, err))
			forbidden = forbidden || strings.Contains(err.Error(), "forbidden") // the library has no other sign of it
			continue
		}
		r.reached = i
		return r, nil
	}
	if forbidden {
		return nil, command.Refused(fmt.Errorf("%w\nYou need the verbs get and create for pods/portforward in the namespace %s",
			errors.Join(failures...), c.namespace))
	}
	return nil, command.Unreachable(errors.Join(failures...))
}

// narrow leaves the first member that could be reached, and no other one.
func (r *road) narrow() {
	for i, s := range r.stops {
		if i != r.reached {
			s.tunnel.close()
		}
	}
	r.stops, r.reached = r.stops[r.reached:r.reached+1], 0
}

// endpoints are the addresses of the members that serve; of all that run if none does.
func (r *road) endpoints() (all []string) {
	for _, s := range r.stops {
		if s.ready || !r.stops[0].ready {
			all = append(all, net.JoinHostPort(s.names[0], strconv.Itoa(int(s.port))))
		}
	}
	return all
}

// dial opens a connection to an address that a member has, through Kubernetes, and to any other one directly.
func (r *road) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(r.stops, func(s *stop) bool { return s.called(host) })
	if at < 0 {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is no port", address, port)
	}
	return r.to(ctx, r.stops[at], uint16(number))
}

// to opens a connection to a port of a pod, and encrypts it if the pod does.
func (r *road) to(ctx context.Context, s *stop, port uint16) (net.Conn, error) {
	conn, err := s.tunnel.dial(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", s.name, err)
	}
	if s.encryption != nil {
		secured := tls.Client(conn, s.encryption)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("pod %s: %w", s.name, err)
		}
		conn = secured
	}
	if !r.keep(conn) {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, nil
}

// keep remembers a connection or a listener, to close it with the road. It tells whether the road is open.
func (r *road) keep(c io.Closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.open = append(r.open, c)
	}
	return !r.closed
}

// close ends all connections.
func (r *road) close() {
	r.mu.Lock()
	r.closed = true
	open := r.open
	r.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	for _, s := range r.stops {
		s.tunnel.close()
	}
}

// called tells whether a host is the pod: one of its names, a longer form of it, or its first labels.
func (p *pod) called(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if slices.Contains(p.names, host) {
		return true
	}
	whole := p.names[0]
	return strings.HasSuffix(whole, ".svc") && (strings.HasPrefix(host, whole+".") || strings.HasPrefix(whole, host+"."))
}
