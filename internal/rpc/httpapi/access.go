package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/tlsconn"
)

// guarded lets through what --host-whitelist and --cors allow, as etcd does: a browser that was lured to another name of this
// host is turned away, and scripts of foreign pages are told whether they may read the answer.
func (a *API) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path, isBeta := strings.CutPrefix(r.URL.Path, "/v3beta/"); isBeta { // its name before etcd 3.4
			r.URL.Path = "/v3/" + path
		}
		if !tlsconn.Encrypted(r) && !allowed(a.options.AllowedHosts, hostOf(r)) {
			http.Error(w, fmt.Sprintf(misdirected, hostOf(r)), http.StatusMisdirectedRequest)
			return
		}
		if a.AllowsOrigin("*") {
			allowOrigin(w, "*")
		} else if origin := r.Header.Get("Origin"); origin != "" && a.AllowsOrigin(origin) {
			allowOrigin(w, origin)
		}
		if r.Method == http.MethodOptions {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// misdirected tells who called this member by a name that is not allowed what to do; with that name.
const misdirected = `
This member does not answer to the host name of the request (DNS rebinding, CVE-2018-5702).

To use that name, either
- encrypt the client URLs: then every HTTPS request is answered, or
- add it to the host names that are allowed: --host-whitelist=%q
`

// AllowsOrigin reports whether scripts of a page may read what this member answers.
func (a *API) AllowsOrigin(origin string) bool { return allowed(a.options.AllowedOrigins, origin) }

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
