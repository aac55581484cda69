package httpapi

import (
	"net"
	"net/http"
	"slices"

	"github.com/quorate/quorate/internal/tlsconn"
)

// guarded lets through what --host-whitelist and --cors allow, as etcd does: a browser that was lured to another name of this
// host is turned away, and scripts of foreign pages are told whether they may read the answer.
func (a *API) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !tlsconn.Encrypted(r) && !allowed(a.options.AllowedHosts, hostOf(r)) {
			http.Error(w, "the host name is not in --host-whitelist: "+hostOf(r), http.StatusMisdirectedRequest)
			return
		}
		if allowed(a.options.AllowedOrigins, "*") {
			allowOrigin(w, "*")
		} else if origin := r.Header.Get("Origin"); origin != "" && allowed(a.options.AllowedOrigins, origin) {
			allowOrigin(w, origin)
		}
		if r.Method == http.MethodOptions {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowed reports whether a name is in a list; none, or an asterisk in it, stands for all.
func allowed(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, "*") || slices.Contains(list, name)
}

// hostOf is the name by which a request calls this host, without the port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func allowOrigin(w http.ResponseWriter, origin string) {
	h := w.Header()
	h.Add("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE")
	h.Add("Access-Control-Allow-Origin", origin)
	h.Add("Access-Control-Allow-Headers", "accept, content-type, authorization")
}
