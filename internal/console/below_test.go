package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quorate/quorate/internal/console/page"
)

// Ensure that a page whose path ends with a slash has the paths below it, each with a title and sections of its own, and that its
// pictures have a policy of theirs.
func TestConsole_below(t *testing.T) {
	p := page.Page{
		Path: "/books/", Name: "Books", Templates: fstest.MapFS{"s.html": {Data: []byte(`{{define "s"}}<p>read {{.}}</p>{{end}}`)}},
		Title:    func(r *page.Request) string { return r.Below },
		Pictures: fstest.MapFS{"a.svg": {Data: []byte("<svg/>")}, "a.txt": {Data: []byte("text")}},
		Sections: []page.Section{{ID: "one", Live: true, Template: "s", Load: func(_ context.Context, r *page.Request) (any, error) {
			return "<" + r.Below + ">", nil
		}}},
	}
	h, _ := serve(t, &member{}, p)
	for target, want := range map[string]string{
		"/books/": "<h1>Books</h1>read &lt;&gt;", "/books/a": "<h1>a</h1>read &lt;a&gt;", "/books/a/b": "<h1>a/b</h1>read &lt;a/b&gt;",
		"/books/%3Ci%3E": "<h1>&lt;i&gt;</h1>read &lt;&lt;i&gt;&gt;", "/books/pictures": "<h1>pictures</h1>read &lt;pictures&gt;",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil))
		for _, part := range strings.SplitAfter(want, "</h1>") {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %d, no %s in %s", target, w.Code, part, w.Body)
			}
		}
	}
	for target, want := range map[string]int{"/books/pictures/a.svg": 200, "/books/pictures/a.txt": 404, "/books/pictures/b.svg": 404,
		"/books/" + strings.Repeat("x", 1<<14): 414} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil))
		if w.Code != want || want == 200 && !strings.Contains(w.Header().Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%.40s: %d, %v", target, w.Code, w.Header())
		}
	}
}
