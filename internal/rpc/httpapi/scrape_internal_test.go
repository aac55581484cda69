package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlines is an answer that notes until when it may be written.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// Ensure that a scrape that nobody reads ends, and that its connection is good for other requests afterwards.
func TestHandler_metricsUnread(t *testing.T) {
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	during := 0
	inTime(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = len(d.set) })).
		ServeHTTP(d, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if during != 1 || len(d.set) != 2 || d.set[0].IsZero() || time.Until(d.set[0]) > scrapeTimeout || !d.set[1].IsZero() {
		t.Errorf("deadlines %v, %d of them before the answer", d.set, during)
	}
}
