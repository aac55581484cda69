package k8s

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/test/bench/latency"
)

// recorder keeps what one step of the load gave. A request that was due, or sent, outside of its window does not count. It is
// safe for concurrent use.
type recorder struct {
	from, to time.Time
	mu       sync.Mutex
	times    [classes]latency.Histogram
	all      latency.Histogram // of mutations
	lag      latency.Histogram
	ends     []time.Time // of mutations that succeeded, in and out of the window
	failed   map[string]int
	errors   int
}

func newRecorder(from, to time.Time) *recorder {
	return &recorder{from: from, to: to, failed: map[string]int{}}
}

func (r *recorder) counts(at time.Time) bool { return !at.Before(r.from) && at.Before(r.to) }

// done notes a request that was due at some time and ends now, or the error that it ended with.
func (r *recorder) done(c Class, due time.Time, err error) {
	now := time.Now()
	if err != nil {
		r.fail(c.String(), err)
		return
	}
	r.took(c, due, now.Sub(due))
}

func (r *recorder) took(c Class, due time.Time, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(c) < Mutations {
		r.ends = append(r.ends, due.Add(took))
	}
	if !r.counts(due) {
		return
	}
	r.times[c].Record(took)
	if int(c) < Mutations {
		r.all.Record(took)
	}
}

// fail counts an error, in the window or not. A recorder that is nil counts nothing.
func (r *recorder) fail(what string, err error) {
	if r == nil {
		return
	}
	r.note(what, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors++
}

// note keeps the text of what is no request's error.
func (r *recorder) note(what string, err error) {
	if r == nil {
		return
	}
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text = "took too long"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[fmt.Sprintf("%s: %s", what, text)]++
}

func (r *recorder) told(sent, now time.Time) {
	if r == nil || !r.counts(sent) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag.Record(now.Sub(sent))
}
