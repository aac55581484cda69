package s3_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Ensure that a server cannot send a process to another one by a redirect, nor by the region that it names.
func TestStore_redirect(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	host := strings.TrimPrefix(other.URL, "http://")
	for _, status := range []int{301, 302, 303, 307, 308, 400, 403} {
		v := serve(t)
		v.setBefore(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", other.URL+r.URL.RequestURI())
			w.Header().Set("X-Amz-Bucket-Region", host)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`<Error><Code>AuthorizationHeaderMalformed</Code><Endpoint>` + host + `</Endpoint><Region>` + host +
				`</Region></Error>`))
			return true
		})
		s := v.open(t)
		ctx := t.Context()
		if err := s.Put(ctx, "o", strings.NewReader("x"), 1); err == nil {
			t.Errorf("%d: put succeeded", status)
		}
		if body, err := s.Get(ctx, "o", 0, -1); err == nil {
			t.Errorf("%d: get succeeded", status)
			_ = body.Close()
		}
		if _, _, err := s.List(ctx, "", "", 10); err == nil {
			t.Errorf("%d: list succeeded", status)
		}
		if err := s.Delete(ctx, "o"); err == nil {
			t.Errorf("%d: delete succeeded", status)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the other server was asked %d times", n)
	}
}
