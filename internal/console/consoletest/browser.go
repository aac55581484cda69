package consoletest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/console"
	"github.com/quorate/quorate/internal/console/page"
)

// Browser looks at pages of a console, and sends forms as a page of the console does. It keeps no cookies.
type Browser struct {
	t       testing.TB
	handler http.Handler
}

// Open makes a console with these pages, whose member answers by conn. admin says whether it has actions.
func Open(t testing.TB, conn grpc.ClientConnInterface, pages []page.Page, admin bool) *Browser {
	t.Helper()
	c, err := console.New(console.Options{Conn: conn, Pages: pages, Member: "m1", Endpoint: "http://127.0.0.1:2379",
		Admin: admin, MemoryBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler),
		Lend:  func(*http.Request, int) (func(), error) { return func() {}, nil },
		Enter: func(r *http.Request) (context.Context, func()) { return r.Context(), func() {} }})
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{t, c.Handler()}
}

// Get returns a page.
func (b *Browser) Get(target string) string {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil))
	if w.Code != http.StatusOK {
		b.t.Fatalf("%s: status %d", target, w.Code)
	}
	return w.Body.String()
}

// Post sends a form, and returns the status, and the page or where the browser goes on.
func (b *Browser) Post(target string, form url.Values) (code int, body, to string) {
	b.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+target, io.NopCloser(strings.NewReader(form.Encode())))
	r.ContentLength = int64(len(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1")
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header().Get("Location")
}
