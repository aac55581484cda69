package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quorate/quorate/internal/limits/admission"
)

const (
	// maxScrapes bounds how many scrapes may run at once, of which a client host has as many as are free for others, and
	// scrapeTimeout how long one may take to be read. Each keeps its answer until then, some hundred kilobytes.
	maxScrapes    = 16
	scrapeTimeout = 10 * time.Second
	// scrapeRest is for how many times as long as an answer took to be made none is made: all scrapes together have a fifth of
	// a processor.
	scrapeRest = 4
	// mostRest is for how long none is made at most.
	mostRest = 100 * time.Millisecond
)

// scrapes answers /metrics. Answers are made one at a time, by the goroutine of a request: they cost milliseconds and
// megabytes.
type scrapes struct {
	gather http.HandlerFunc // writes what there is
	places *admission.Ledger
	turn   chan struct{} // has one while no goroutine makes an answer
}

func newScrapes(registry *prometheus.Registry, turn chan struct{}) http.HandlerFunc {
	// OpenMetrics, for those that ask for it, has exemplars.
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	s := &scrapes{gather: handler.ServeHTTP, places: admission.NewLedger(maxScrapes), turn: turn}
	return promhttp.InstrumentMetricHandler(registry, http.HandlerFunc(s.serve)).ServeHTTP
}

// newTurn is for all scrapes of a process.
func newTurn() chan struct{} {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	return turn
}

func (s *scrapes) serve(w http.ResponseWriter, r *http.Request) {
	leave, entered := s.places.Enter(admission.Host(admission.AddressOf(r)), 1)
	if !entered {
		http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d, of which an address has as many as are free), "+
			"try again later.", maxScrapes), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	answer := &kept{header: w.Header(), code: http.StatusOK}
	if !s.make(answer, r) {
		return // the client has gone
	}
	inTime(w, answer.send)
}

// make makes an answer when it is its turn; false if the client does not wait for that.
func (s *scrapes) make(answer *kept, r *http.Request) bool {
	select {
	case <-s.turn:
	case <-r.Context().Done():
		return false
	}
	begun := time.Now()
	defer func() {
		time.AfterFunc(min(scrapeRest*time.Since(begun), mostRest), func() { s.turn <- struct{}{} })
	}()
	s.gather(answer, r)
	return true
}

// inTime ends an answer whose client does not read it in time.
func inTime(w http.ResponseWriter, send func(http.ResponseWriter)) {
	answer := http.NewResponseController(w)
	if err := answer.SetWriteDeadline(time.Now().Add(scrapeTimeout)); err == nil {
		defer func() { _ = answer.SetWriteDeadline(time.Time{}) }() // the connection serves other requests, too
	}
	send(w)
}
