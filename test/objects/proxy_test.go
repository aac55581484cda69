package objects_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fault is what the proxy does to a request. It returns true once it has answered, or ended the connection.
type fault func(p *proxy, w http.ResponseWriter, r *http.Request) bool

// proxy stands before a server. It keeps the name of the host, which the signature covers.
type proxy struct {
	*httptest.Server
	to string

	mu     sync.Mutex
	fault  fault
	asked  []string // method and target of each request
	strike int      // how often the fault struck
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	p := &proxy{to: to}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) address() string { return strings.TrimPrefix(p.URL, "http://") }

// inject lets requests meet a fault from now on, the first n that match, or all if n is negative.
func (p *proxy) inject(n int, match func(*http.Request) bool, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strike = 0
	p.fault = func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		p.mu.Lock()
		hit := match(r) && (n < 0 || p.strike < n)
		if hit {
			p.strike++
		}
		p.mu.Unlock()
		return hit && f(p, w, r)
	}
}

func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
}

func (p *proxy) struck() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.strike
}

// requests returns those that came since the last call.
func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.asked
	p.asked = nil
	return out
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.URL.Path)
	f := p.fault
	p.mu.Unlock()
	if f != nil && f(p, w, r) {
		return
	}
	answer := p.forward(r, r.Body)
	if answer == nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	reply(w, answer, answer.Body)
}

// forward asks the server; it returns nil if that gives no answer.
func (p *proxy) forward(r *http.Request, body io.Reader) *http.Response {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", p.to, ""
	out.Body = io.NopCloser(body)
	if r.ContentLength == 0 {
		out.Body = http.NoBody
	}
	answer, err := roundTripper.RoundTrip(out)
	if err != nil {
		return nil
	}
	return answer
}

func reply(w http.ResponseWriter, answer *http.Response, body io.Reader) {
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, body) // the client may have gone
}

// refuse answers instead of the server.
func refuse(status int, code string) fault {
	return func(_ *proxy, w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>said by the proxy</Message></Error>`, code)
		return true
	}
}

// lostBefore ends the connection before the server is asked, lostAfter once it has answered.
func lostBefore(*proxy, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

func lostAfter(p *proxy, _ http.ResponseWriter, r *http.Request) bool {
	if answer := p.forward(r, r.Body); answer != nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	panic(http.ErrAbortHandler)
}

// cutAnswer ends the connection in the middle of the answer's body.
func cutAnswer(p *proxy, w http.ResponseWriter, r *http.Request) bool {
	answer := p.forward(r, r.Body)
	if answer == nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	reply(w, answer, bytes.NewReader(body[:len(body)/2]))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// changeAnswer changes the body of an answer, and keeps its length.
func changeAnswer(change func([]byte) []byte) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		answer := p.forward(r, r.Body)
		if answer == nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		reply(w, answer, bytes.NewReader(change(body)))
		return true
	}
}

// changeRequest changes the body of a request on its way.
func changeRequest(change func([]byte) []byte) fault {
	return func(p *proxy, w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		answer := p.forward(r, bytes.NewReader(change(body)))
		if answer == nil {
			panic(http.ErrAbortHandler)
		}
		defer answer.Body.Close()
		reply(w, answer, answer.Body)
		return true
	}
}

// slow lets the answer come late.
func slow(_ *proxy, _ http.ResponseWriter, r *http.Request) bool {
	late := time.NewTimer(200 * time.Millisecond)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.Context().Done():
	}
	return false
}

// ignoreConditions lets the server see no condition.
func ignoreConditions(_ *proxy, _ http.ResponseWriter, r *http.Request) bool {
	r.Header.Del("If-None-Match")
	return false
}

func flip(body []byte) []byte {
	if len(body) > 0 {
		body[len(body)/2] ^= 1
	}
	return body
}

var listEntry = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

// reorder turns the objects of a list round.
func reorder(body []byte) []byte {
	entries := listEntry.FindAll(body, -1)
	slices.Reverse(entries)
	i := -1
	return listEntry.ReplaceAllFunc(body, func([]byte) []byte {
		i++
		return entries[i]
	})
}

func always(*http.Request) bool { return true }

func isList(r *http.Request) bool { return r.URL.Query().Has("list-type") }

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

func isGet(r *http.Request) bool { return r.Method == http.MethodGet && !isList(r) }

func isDelete(r *http.Request) bool { return r.Method == http.MethodDelete }

func isThirdPart(r *http.Request) bool { return isPut(r) && r.URL.Query().Get("partNumber") == "3" }
