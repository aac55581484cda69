package services

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	lookAt   = 200 * time.Millisecond // how often the services are read from the cache
	dialTime = 2 * time.Second
)

// Proxy accepts TCP connections at the addresses of services and forwards each to an endpoint that is ready, until ctx
// ends. The machine must take the addresses for its own.
func Proxy(ctx context.Context, table *Table) {
	open := map[string]net.Listener{}
	said := map[string]bool{}
	ticker := time.NewTicker(lookAt)
	defer ticker.Stop()
	for ctx.Err() == nil {
		wanted := map[string]func() (string, bool){}
		all, _ := table.services.List(labels.Everything())
		for _, s := range all {
			if s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.ClusterIP == "" {
				continue
			}
			for _, port := range s.Spec.Ports {
				if port.Protocol == corev1.ProtocolTCP {
					target := func() (string, bool) { return table.target(s.Namespace, s.Name, port) }
					if _, ok := target(); ok { // else connections are refused
						wanted[net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(port.Port)))] = target
					}
				}
			}
		}
		for at, l := range open {
			if wanted[at] == nil {
				l.Close()
				delete(open, at)
			}
		}
		for at, target := range wanted {
			if open[at] != nil {
				continue
			}
			l, err := net.Listen("tcp", at)
			if err != nil {
				if !said[at] {
					fmt.Fprintln(os.Stderr, "services:", err)
				}
				said[at] = true
				continue
			}
			open[at] = l
			go accept(l, target)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	for _, l := range open {
		l.Close()
	}
}

func accept(l net.Listener, target func() (string, bool)) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			address, ok := target()
			if !ok {
				return
			}
			to, err := net.DialTimeout("tcp", address, dialTime)
			if err != nil {
				return
			}
			defer to.Close()
			both(from, to)
		}()
	}
}

// both copies in both directions until both have ended.
func both(a, b net.Conn) {
	var copies sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		copies.Go(func() {
			io.Copy(pair[0], pair[1])
			if half, ok := pair[0].(*net.TCPConn); ok {
				half.CloseWrite()
			}
		})
	}
	copies.Wait()
}
