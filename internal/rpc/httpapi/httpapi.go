package httpapi

import (
	"encoding/json"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/rpc/health"
)

// Options say what is served to whom.
type Options struct {
	Health  *health.Checker
	Version Version
	// AllowedHosts are the names by which requests that are not encrypted may call this member, AllowedOrigins the pages
	// whose scripts may read what it answers. None, or "*", means all.
	AllowedHosts, AllowedOrigins []string
	Logger                       *slog.Logger
}

// Version is what this server says it is.
type Version struct {
	Server  string `json:"etcdserver"`
	Cluster string `json:"etcdcluster"`
	Storage string `json:"storage"`
}

// API is the HTTP side of one member.
type API struct {
	options  Options
	scraping chan struct{} // the turn of scrapes
}

// New makes the HTTP side of a member.
func New(options Options) *API { return &API{options, newTurn()} }

// Handler serves the HTTP side: /health, /livez, /readyz, /version, /metrics and /debug/vars. It goes behind the
// client port (portmux.Mux) or the URLs for HTTP clients. more adds what else they get.
func (a *API) Handler(registry *prometheus.Registry, more func(*http.ServeMux)) http.Handler {
	mux := a.monitored(registry)
	mux.Handle("/version", onlyGet(a.serveVersion))
	mux.Handle("/debug/vars", onlyGet(serveVars))
	if more != nil {
		more(mux)
	}
	return a.guarded(mux)
}

// MetricsHandler serves what the metrics URLs have: /metrics, /health, /livez and /readyz, and nothing else.
func (a *API) MetricsHandler(registry *prometheus.Registry) http.Handler {
	return a.monitored(registry)
}

func (a *API) monitored(registry *prometheus.Registry) *http.ServeMux {
	mux := http.NewServeMux()
	a.addHealth(mux)
	mux.Handle("/metrics", newScrapes(registry, a.scraping))
	return mux
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

func (a *API) serveVersion(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(a.options.Version)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	a.write(w, body)
}

// write sends a body. That the client went away meanwhile concerns no other.
func (a *API) write(w http.ResponseWriter, body []byte) {
	if _, err := w.Write(body); err != nil {
		a.options.Logger.Debug("http response was not taken", "err", err)
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
