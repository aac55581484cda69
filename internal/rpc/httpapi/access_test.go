package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/internal/rpc/health"
	"github.com/quorate/quorate/internal/rpc/httpapi"
)

// Ensure that hosts and origins that are not listed are turned away or told nothing, and that OPTIONS is answered.
func TestAPI_Handler_hostsAndOrigins(t *testing.T) {
	api := httpapi.New(httpapi.Options{
		Health:       health.New(health.Options{}),
		AllowedHosts: []string{"good.example"}, AllowedOrigins: []string{"https://page.example"},
	})
	s := httptest.NewServer(api.Handler(prometheus.NewRegistry(), nil))
	defer s.Close()
	for _, row := range []struct {
		method, host, origin string
		code                 int
		allowed              string
	}{
		{"GET", "good.example:2379", "", 200, ""},
		{"GET", "bad.example", "", 421, ""},
		{"OPTIONS", "bad.example", "https://page.example", 421, ""},
		{"GET", "good.example", "https://page.example", 200, "https://page.example"},
		{"OPTIONS", "good.example", "https://page.example", 200, "https://page.example"},
		{"GET", "good.example", "https://other.example", 200, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, s.URL+"/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = row.host
		if row.origin != "" {
			request.Header.Set("Origin", row.origin)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Access-Control-Allow-Origin"); answer.StatusCode != row.code || got != row.allowed {
			t.Errorf("%+v: got %d, origin %q", row, answer.StatusCode, got)
		}
	}
}
