package rpc

import (
	"encoding/json"
	"expvar"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the HTTP side: /health, /livez, /readyz, /version, /metrics and /debug/vars. It goes behind the
// client port (Mux) or the URLs for HTTP clients. more adds what else they get.
func (s *Services) Handler(registry *prometheus.Registry, more func(*http.ServeMux)) http.Handler {
	mux := s.monitored(registry)
	mux.Handle("/version", onlyGet(s.serveVersion))
	mux.Handle("/debug/vars", onlyGet(serveVars))
	if more != nil {
		more(mux)
	}
	return s.guarded(mux)
}

// MetricsHandler serves what the metrics URLs have: /metrics, /health, /livez and /readyz, and nothing else.
func (s *Services) MetricsHandler(registry *prometheus.Registry) http.Handler {
	return s.monitored(registry)
}

func (s *Services) monitored(registry *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	s.addHealth(mux)
	mux.Handle("/metrics", inTime(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: false, MaxRequestsInFlight: maxScrapes,
	})))
	return mux
}

// maxScrapes bounds how many scrapes may run at once, scrapeTimeout how long one may take to be read.
const (
	maxScrapes    = 64
	scrapeTimeout = 10 * time.Second
)

// inTime ends a request whose client does not read the answer in time.
func inTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.NewResponseController(w)
		if err := answer.SetWriteDeadline(time.Now().Add(scrapeTimeout)); err == nil {
			defer func() { _ = answer.SetWriteDeadline(time.Time{}) }() // the connection serves other requests, too
		}
		h.ServeHTTP(w, r)
	})
}

// onlyGet refuses all methods but GET.
func onlyGet(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		serve(w, r)
	})
}

func (s *Services) serveVersion(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(struct {
		Server  string `json:"etcdserver"`
		Cluster string `json:"etcdcluster"`
		Storage string `json:"storage"`
	}{s.options.Version.Server, s.options.Version.Cluster, s.options.Version.Storage})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	s.write(w, body)
}

// write sends a body. That the client went away meanwhile concerns nobody else.
func (s *Services) write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		s.options.Logger.Debug("http response was not taken", "err", err)
	}
}

func serveVars(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	separator := "{\n"
	expvar.Do(func(v expvar.KeyValue) {
		fmt.Fprintf(w, "%s%q: %s", separator, v.Key, v.Value)
		separator = ",\n"
	})
	fmt.Fprint(w, "\n}\n")
}
