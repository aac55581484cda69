package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// Ensure that a scrape that no client reads ends, and that its connection is good for other requests afterwards.
func TestHandler_metricsUnread(t *testing.T) {
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	during := 0
	inTime(d, func(http.ResponseWriter) { during = len(d.set) })
	if during != 1 || len(d.set) != 2 || d.set[0].IsZero() || time.Until(d.set[0]) > scrapeTimeout || !d.set[1].IsZero() {
		t.Errorf("deadlines %v, %d of them before the answer", d.set, during)
	}
}

// collected is a metric that notes how many ask for it at once.
type collected struct {
	prometheus.Gauge
	now, most atomic.Int64
}

// Collect implements prometheus.Collector.
func (c *collected) Collect(out chan<- prometheus.Metric) {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	for range 100 {
		runtime.Gosched() // others may come
	}
	c.Gauge.Collect(out)
	c.now.Add(-1)
}

// from is a scrape by a host.
func from(host string) *http.Request {
	ctx := context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{}))
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	r.RemoteAddr = host + ":1"
	return r
}

// Ensure that answers are made one at a time, also for two ports.
func TestScrapes_oneAtATime(t *testing.T) {
	registry, c := prometheus.NewRegistry(), &collected{Gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"})}
	registry.MustRegister(c)
	turn := newTurn()
	ports := []http.HandlerFunc{newScrapes(registry, turn), newScrapes(registry, turn)}
	var working sync.WaitGroup
	for i := range 2 * maxHostScrapes {
		working.Go(func() {
			w := httptest.NewRecorder()
			ports[i%2].ServeHTTP(w, from("10.0.0.1"))
			if w.Code != http.StatusOK || w.Body.Len() == 0 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	working.Wait()
	if c.most.Load() != 1 {
		t.Errorf("%d answers were made at once", c.most.Load())
	}
}

// unread is the answer of a client that does not read.
type unread struct {
	*httptest.ResponseRecorder
	begun, ends chan struct{}
}

// Write implements http.ResponseWriter.
func (u *unread) Write(p []byte) (int, error) {
	u.begun <- struct{}{}
	<-u.ends
	return len(p), nil
}

// maxHostScrapes is how many a host has that is alone.
const maxHostScrapes = maxScrapes / 2

// Ensure that hosts whose scrapes are not read, and that have as many as they may have, leave places for the next host.
func TestScrapes_manyHosts(t *testing.T) {
	s := newScrapes(prometheus.NewPedanticRegistry(), newTurn())
	ends, begun := make(chan struct{}), make(chan struct{}, maxScrapes)
	var working sync.WaitGroup
	for _, host := range []struct {
		name string
		most int
	}{{"10.0.0.1", maxHostScrapes}, {"10.0.0.2", maxHostScrapes / 2}} {
		for range host.most {
			working.Go(func() { s.ServeHTTP(&unread{httptest.NewRecorder(), begun, ends}, from(host.name)) })
		}
		for range host.most {
			<-begun
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, from(host.name)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s got %d beyond its share", host.name, w.Code)
		}
	}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, from("10.0.0.3")); w.Code != http.StatusOK {
		t.Errorf("the next host got %d", w.Code)
	}
	close(ends)
	working.Wait()
}

// Ensure that a host whose scrapes are not read keeps answers of its own only, and keeps no other host from its scrape.
func TestScrapes_oneHost(t *testing.T) {
	s := newScrapes(prometheus.NewPedanticRegistry(), newTurn())
	ends, begun := make(chan struct{}), make(chan struct{}, maxHostScrapes)
	var working sync.WaitGroup
	for range maxHostScrapes {
		working.Go(func() { s.ServeHTTP(&unread{httptest.NewRecorder(), begun, ends}, from("10.0.0.1")) })
	}
	for range maxHostScrapes {
		<-begun
	}
	for host, want := range map[string]int{"10.0.0.1": http.StatusServiceUnavailable, "10.0.0.2": http.StatusOK} {
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, from(host)); w.Code != want {
			t.Errorf("%s got %d, want %d", host, w.Code, want)
		}
	}
	close(ends)
	working.Wait()
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, from("10.0.0.1")); w.Code != http.StatusOK {
		t.Errorf("got %d once the answers were read", w.Code)
	}
}
