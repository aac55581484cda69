package logpace

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// pause follows each line that is logged. A client can make a library write thousands: one for each header of a request by
// JSON that is no text, for example.
const pause = time.Second

// Pace says which lines of a kind to log.
type Pace struct {
	Burst int // lines that are logged at once after as many seconds of silence; zero: one

	mu         sync.Mutex
	next       time.Time // when a line would be logged if they came evenly
	suppressed int       // since the last one that was
}

// Next tells whether to log a line, with how many were not logged before it.
func (p *Pace) Next(now time.Time) (suppressed int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Before(p.next.Add(-pause * time.Duration(max(p.Burst, 1)-1))) {
		p.suppressed++
		return 0, false
	}
	if p.next.Before(now) {
		p.next = now
	}
	suppressed, p.suppressed, p.next = p.suppressed, 0, p.next.Add(pause)
	return suppressed, true
}

type writer struct {
	logger *slog.Logger
	prefix string
	now    func() time.Time
	pace   Pace
}

// Writer takes the lines that a library would write to the standard error, where they could block it, and logs them with a
// prefix as warnings, but not each of a flood.
func Writer(logger *slog.Logger, prefix string) io.Writer {
	return newWriter(logger, prefix)
}

func newWriter(logger *slog.Logger, prefix string) *writer {
	return &writer{logger: logger, prefix: prefix, now: time.Now}
}

// Write implements io.Writer.
func (w *writer) Write(line []byte) (int, error) {
	if suppressed, ok := w.pace.Next(w.now()); ok {
		w.logger.Warn(w.prefix+strings.TrimSpace(string(line)), "suppressed", suppressed)
	}
	return len(line), nil
}
