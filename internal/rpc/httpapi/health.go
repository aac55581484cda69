package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/quorate/quorate/internal/rpc/health"
)

func (a *API) addHealth(mux *http.ServeMux) {
	mux.Handle("/health", onlyGet(a.serveHealth))
	for _, group := range a.options.Health.Groups() {
		root := "/" + group.Name
		mux.Handle(root, onlyGet(func(w http.ResponseWriter, r *http.Request) {
			a.serveChecks(w, r, group.Checks, excluded(r))
		}))
		for _, check := range group.Checks {
			mux.Handle(root+"/"+check.Name, onlyGet(func(w http.ResponseWriter, r *http.Request) {
				a.serveChecks(w, r, []*health.Check{check}, nil)
			}))
		}
	}
}

// excluded are the names that a request asks not to look at.
func excluded(r *http.Request) map[string]bool {
	names := make(map[string]bool)
	for _, name := range r.URL.Query()["exclude"] {
		names[name] = true
	}
	return names
}

// serveChecks runs checks and says which failed; those that passed are named too if the caller wants it verbose.
func (a *API) serveChecks(w http.ResponseWriter, r *http.Request, checks []*health.Check, excluded map[string]bool) {
	report, healthy := a.options.Health.Run(r.Context(), checks, excluded, r.URL.Path)
	if !healthy {
		http.Error(w, report, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if _, verbose := r.URL.Query()["verbose"]; verbose {
		a.write(w, []byte(report))
	}
	a.write(w, []byte("ok\n"))
}

// serveHealth is etcd's older endpoint.
func (a *API) serveHealth(w http.ResponseWriter, r *http.Request) {
	serializable := r.URL.Query().Get("serializable") == "true"
	reason := a.options.Health.Unhealthy(r.Context(), excluded(r), serializable, r.URL.Path)
	body, err := json.Marshal(struct {
		Health string `json:"health"`
		Reason string `json:"reason"`
	}{fmt.Sprint(reason == ""), reason})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if reason != "" {
		http.Error(w, string(body), http.StatusServiceUnavailable)
		return
	}
	a.write(w, body)
}
