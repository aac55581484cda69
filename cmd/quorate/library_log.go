package main

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// libraryPause follows each line of a library. What a client sends can make a library write thousands: one for each header of a
// request by JSON that is no text, for example.
const libraryPause = time.Second

// libraryLog takes the lines that a library would write to the standard error, where they could block it, but not each of a
// flood.
type libraryLog struct {
	logger *slog.Logger
	now    func() time.Time

	mu         sync.Mutex
	next       time.Time // when a line is logged again
	suppressed int       // since the last one that was
}

func newLibraryLog(logger *slog.Logger) *libraryLog {
	return &libraryLog{logger: logger, now: time.Now}
}

// Write implements io.Writer.
func (l *libraryLog) Write(line []byte) (int, error) {
	if suppressed, ok := l.note(); ok {
		l.logger.Warn("grpc: "+strings.TrimSpace(string(line)), "suppressed", suppressed)
	}
	return len(line), nil
}

// note tells whether to log a line, with how many were not logged before it.
func (l *libraryLog) note() (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if now.Before(l.next) {
		l.suppressed++
		return 0, false
	}
	suppressed, l.suppressed, l.next = l.suppressed, 0, now.Add(libraryPause)
	return suppressed, true
}
