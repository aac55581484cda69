package grpcproxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/internal/base/tlsconn"
	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// healthKey is what is read, and watched, to find out whether that works. It need not exist.
	healthKey    = "a"
	readTimeout  = time.Second
	watchTimeout = 3 * time.Second

	// maxHTTPHeaderBytes bounds the headers of a request, idleTimeout how long a connection may be without one.
	maxHTTPHeaderBytes = 64 << 10
	idleTimeout        = 3 * time.Minute
	// scrapeTimeout bounds how long metrics may take to be read, maxScrapes how many requests do that at once, and
	// maxScrapeBytes what a member answers.
	scrapeTimeout  = 10 * time.Second
	maxScrapes     = 64
	maxScrapeBytes = 64 << 20
)

// web answers HTTP: /metrics and /health of the members, /proxy/metrics and /proxy/health of this proxy.
type web struct {
	members, self *clientv3.Client
	tls           *tls.Config // of the members; nil: none
	counts        *counts
	logger        *slog.Logger
}

// serve answers on a listener until that is closed, with profiles if they are asked for.
func (h *web) serve(l net.Listener, profiles bool) error {
	server := &http.Server{Handler: h.handler(profiles), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHTTPHeaderBytes, ConnContext: tlsconn.ConnContext,
		ErrorLog: slog.NewLogLogger(h.logger.Handler(), slog.LevelDebug)}
	defer server.Close()
	if err := server.Serve(admission.Yielding(l)); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (h *web) handler(profiles bool) http.Handler {
	mux := http.NewServeMux()
	places := make(chan struct{}, maxScrapes)
	add := func(path string, serve http.HandlerFunc) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
			default:
				http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
				return
			}
			if answer := http.NewResponseController(w); answer.SetWriteDeadline(time.Now().Add(scrapeTimeout)) == nil {
				defer func() { _ = answer.SetWriteDeadline(time.Time{}) }() // the connection serves other requests, too
			}
			serve(w, r)
		})
	}
	add("/metrics", h.serveMemberMetrics)
	add("/proxy/metrics", promhttp.HandlerFor(h.counts.registry, promhttp.HandlerOpts{}).ServeHTTP)
	add("/health", func(w http.ResponseWriter, r *http.Request) { h.serveHealth(w, r, h.members, false) })
	add("/proxy/health", func(w http.ResponseWriter, r *http.Request) { h.serveHealth(w, r, h.self, true) })
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// health is the answer of etcd's health checks.
type health struct {
	Health string `json:"health"`
	Reason string `json:"reason"`
}

func (h *web) serveHealth(w http.ResponseWriter, r *http.Request, client *clientv3.Client, watches bool) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	answer := health{Health: "true"}
	if answer.Reason = unhealthy(r.Context(), client, watches); answer.Reason != "" {
		answer.Health = "false"
	}
	body, _ := json.Marshal(answer) // two texts
	if answer.Reason == "" {
		h.counts.healthSuccesses.Inc()
		_, _ = w.Write(body) // a client that has gone concerns no other
		return
	}
	h.counts.healthFailure.Inc()
	h.logger.Warn(r.URL.Path+" error", "output", string(body), "status-code", http.StatusServiceUnavailable)
	http.Error(w, string(body), http.StatusServiceUnavailable)
}

// unhealthy returns why a client cannot read, and watch if that is asked for, too; empty if it can. That it has no user or no
// permission is an answer.
func unhealthy(ctx context.Context, client *clientv3.Client, watches bool) string {
	read, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	_, err := client.Get(read, healthKey)
	if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) && !errors.Is(err, rpctypes.ErrUserEmpty) {
		return fmt.Sprintf("GET ERROR:%s", err)
	}
	if !watches {
		return ""
	}
	watched, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	select {
	case <-client.Watch(watched, healthKey, clientv3.WithCreatedNotify()):
		return ""
	case <-watched.Done():
		return "WATCH TIMEOUT"
	}
}

// serveMemberMetrics answers with the metrics of a member, any one that answers, as etcd's proxy does.
func (h *web) serveMemberMetrics(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: h.tls.Clone(), DisableKeepAlives: true}
	endpoints := h.members.Endpoints()
	rand.Shuffle(len(endpoints), func(i, j int) { endpoints[i], endpoints[j] = endpoints[j], endpoints[i] })
	for _, endpoint := range endpoints {
		if !strings.Contains(endpoint, "://") {
			endpoint = h.scheme() + "://" + endpoint
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/metrics", nil)
		if err != nil {
			continue
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			h.logger.Debug("a member's metrics could not be read", "endpoint", endpoint, "err", err)
			continue
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, io.LimitReader(answer.Body, maxScrapeBytes)) // whichever side has gone: the answer is cut
		return
	}
	http.Error(w, "no member answers", http.StatusServiceUnavailable)
}

// scheme is that of endpoints that name none.
func (h *web) scheme() string {
	if h.tls != nil {
		return "https"
	}
	return "http"
}
