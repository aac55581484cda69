package console

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/tlsconn"
)

// The policies say what a browser may load and run: files of the console alone, and no text as a script. The laboratory
// compiles WebAssembly and runs it in a worker. Pictures of the documents have a style of their own, and nothing else.
const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types quorate"
	picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; sandbox"
)

// maxQueryBytes bounds the query of a page, and its path. The keys of a store may be longer; the console has no page for those.
const maxQueryBytes = 8 << 10

// guarded refuses requests that a page elsewhere makes, and tells browsers what an answer may do.
func (c *Console) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		switch {
		case !c.callable(r):
			http.Error(w, "This member does not serve its console by the name "+quoted(r.Host)+". Use an IP address, "+
				"localhost, or a name of --advertise-client-urls or --host-whitelist.", http.StatusMisdirectedRequest)
		case len(r.URL.RawQuery) > maxQueryBytes || len(r.URL.Path) > maxQueryBytes:
			http.Error(w, "The query of this address is longer than 8 KiB.", http.StatusRequestURITooLong)
		case elsewhere(r):
			http.Error(w, "A page of another site may not load this.", http.StatusForbidden)
		case fromAnywhere(r):
			http.Error(w, "This form does not say which page it is from. Browsers of today do, by the header Origin; a "+
				"program may send it, too. Nothing was changed.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// callable reports whether a request names this member. Where it is encrypted the certificate says so.
func (c *Console) callable(r *http.Request) bool {
	if tlsconn.Encrypted(r) {
		return true
	}
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || slices.ContainsFunc(c.options.Hosts, func(name string) bool {
		return strings.EqualFold(name, host)
	})
}

// elsewhere reports whether a page of another site asks, other than by a link that somebody follows.
func elsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	from := site == "cross-site" || site == "same-site"
	return from && (r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet)
}

// fromAnywhere reports whether a form does not say which page it is from: http.CrossOriginProtection takes it for one of a
// program, and it may be one of an old browser, or of one that hides the header, with a page of another site.
func fromAnywhere(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	return !reads && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == ""
}
