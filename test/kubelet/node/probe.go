package node

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/quorate/quorate/test/kubelet/box"
	"github.com/quorate/quorate/test/kubelet/life"
)

// probe runs the probes of a container until ctx ends: first that of its start, then the others.
func (w *worker) probe(ctx context.Context, c *corev1.Container, r *run) {
	seen := w.life.Containers[c.Name]
	set := func(change func()) {
		w.do(func() {
			if w.runs[c.Name] == r && !seen.Stopping {
				change()
			}
		})
	}
	begin := func() {
		set(func() { seen.StartedUp, seen.Ready = true, c.ReadinessProbe == nil })
		go w.repeat(ctx, c, r, c.ReadinessProbe, func(passed, failed bool) {
			if passed || failed {
				set(func() { seen.Ready = passed })
			}
		})
		go w.repeat(ctx, c, r, c.LivenessProbe, func(_, failed bool) {
			if failed {
				set(func() { seen.Unhealthy = true })
			}
		})
	}
	if c.StartupProbe == nil {
		seen.StartedUp, seen.Ready = true, c.ReadinessProbe == nil
		begin()
		return
	}
	startup, started := context.WithCancel(ctx)
	go w.repeat(startup, c, r, c.StartupProbe, func(passed, failed bool) {
		switch {
		case passed:
			started()
			begin()
		case failed:
			set(func() { seen.Unhealthy = true })
		}
	})
}

// repeat tries one probe every period, and reports what the thresholds say.
func (w *worker) repeat(ctx context.Context, c *corev1.Container, r *run, p *corev1.Probe, report func(passed, failed bool)) {
	if p == nil {
		return
	}
	timer := time.NewTimer(life.Delay(p))
	defer timer.Stop()
	var state life.Probe
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		attempt, cancel := context.WithTimeout(ctx, life.Timeout(p))
		success := w.try(attempt, c, r, p)
		cancel()
		if ctx.Err() != nil {
			return
		}
		report(state.Observe(p, success))
		timer.Reset(life.Period(p))
	}
}

func (w *worker) try(ctx context.Context, c *corev1.Container, r *run, p *corev1.Probe) bool {
	address := func(port intstr.IntOrString, host string) string {
		if host == "" {
			host = w.life.Address
		}
		return net.JoinHostPort(host, strconv.Itoa(number(c, port)))
	}
	switch {
	case p.Exec != nil:
		code, err := r.beside(ctx, p.Exec.Command, box.Streams{})
		return err == nil && code == 0
	case p.HTTPGet != nil:
		return get(ctx, address(p.HTTPGet.Port, p.HTTPGet.Host), p.HTTPGet)
	case p.TCPSocket != nil:
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address(p.TCPSocket.Port, p.TCPSocket.Host))
		if err == nil {
			connection.Close()
		}
		return err == nil
	case p.GRPC != nil:
		return healthy(ctx, address(intstr.FromInt32(p.GRPC.Port), ""), p.GRPC.Service)
	}
	return false
}

// number is that of a port, which may be named.
func number(c *corev1.Container, port intstr.IntOrString) int {
	if port.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return int(p.ContainerPort)
			}
		}
	}
	return port.IntValue()
}

func get(ctx context.Context, address string, p *corev1.HTTPGetAction) bool {
	scheme := strings.ToLower(string(p.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+p.Path, nil)
	if err != nil {
		return false
	}
	for _, h := range p.HTTPHeaders {
		request.Header.Add(h.Name, h.Value)
	}
	// As the kubelet: certificates are not checked, and no connection is kept.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	return response.StatusCode >= 200 && response.StatusCode < 400
}

func healthy(ctx context.Context, address string, service *string) bool {
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer connection.Close()
	request := &grpc_health_v1.HealthCheckRequest{}
	if service != nil {
		request.Service = *service
	}
	response, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, request)
	return err == nil && response.Status == grpc_health_v1.HealthCheckResponse_SERVING
}
