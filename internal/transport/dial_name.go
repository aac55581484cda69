package transport

import (
	"context"
	"net"
	"time"
)

const (
	// nextAddress is how long a connection to one address of a name may take before the next address is tried beside it.
	nextAddress = 250 * time.Millisecond
	// maxAddresses is how many addresses of one name are tried: whoever answers for the name says how many there are.
	maxAddresses = 16
)

// dialTarget opens a connection to a host and port, or a socket file. A host may have several addresses, of which some answer
// nothing: that of a pod whose machine is off stays in a headless service of Kubernetes. None of them may use up ctx for the
// others.
func dialTarget(ctx context.Context, network, target string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(target)
	if network != "tcp" || err != nil || host == "" || net.ParseIP(host) != nil {
		return d.DialContext(ctx, network, target)
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, ip := range found[:min(len(found), maxAddresses)] {
		addresses = append(addresses, net.JoinHostPort(ip.String(), port))
	}
	return dialFirst(ctx, addresses, func(ctx context.Context, address string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	})
}

// dialFirst returns the connection of the first address that accepts one, and the error of the first address if none does. It
// tries them in turn, the next one after nextAddress or as soon as one fails, and closes what comes too late.
func dialFirst(
	ctx context.Context, addresses []string, dial func(context.Context, string) (net.Conn, error),
) (net.Conn, error) {
	type result struct {
		at   int
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, len(addresses))
	begun, ended := 0, 0
	begin := func() {
		at := begun
		begun++
		go func() {
			conn, err := dial(ctx, addresses[at])
			results <- result{at, conn, err}
		}()
	}
	defer func() {
		cancel()
		go func(left int) {
			for range left {
				if r := <-results; r.conn != nil {
					_ = r.conn.Close()
				}
			}
		}(begun - ended)
	}()
	errs := make([]error, len(addresses))
	next := time.NewTimer(nextAddress)
	defer next.Stop()
	for begin(); ; {
		select {
		case r := <-results:
			ended++
			if r.err == nil {
				return r.conn, nil
			}
			errs[r.at] = r.err
			if ended == len(addresses) {
				return nil, errs[0]
			}
			if begun < len(addresses) {
				begin()
				next.Reset(nextAddress)
			}
		case <-next.C:
			if begun < len(addresses) {
				begin()
				next.Reset(nextAddress)
			}
		}
	}
}
