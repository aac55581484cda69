package logging

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// MaxQueuedBytes bounds the lines that wait for one output.
const MaxQueuedBytes = 4 << 20

// closePatience is how long Close waits for an output to take the lines that are left.
const closePatience = time.Second

// Sink stands between goroutines that log and an output that may block: a pipe that no process reads, a file on a disk that
// hangs. Write never waits for the output. Lines that find the queue full are dropped and counted; as soon as the output takes
// lines again, it is told how many are missing.
//
//	Write --> waiting (at most limit bytes) --> one goroutine --> output
type Sink struct {
	w      io.Writer
	limit  int
	notice func(dropped uint64) []byte // the line that tells of dropped ones

	mu      sync.Mutex
	waiting []byte // whole lines
	missing uint64 // dropped since the last notice
	closed  bool

	dropped atomic.Uint64
	signal  chan struct{}
	done    chan struct{}
}

// NewSink starts a sink for w that holds at most limit bytes. notice makes the line that tells of dropped ones.
func NewSink(w io.Writer, limit int, notice func(dropped uint64) []byte) *Sink {
	s := &Sink{w: w, limit: limit, notice: notice, signal: make(chan struct{}, 1), done: make(chan struct{})}
	go s.run()
	return s
}

// Write queues one line. It never blocks and never fails: a logger has no caller to tell.
func (s *Sink) Write(line []byte) (int, error) {
	s.mu.Lock()
	if s.closed || len(s.waiting)+len(line) > s.limit {
		s.missing++
		s.dropped.Add(1)
	} else {
		s.waiting = append(s.waiting, line...)
	}
	s.mu.Unlock()
	s.wake()
	return len(line), nil
}

// Dropped counts the lines that never reached the output.
func (s *Sink) Dropped() uint64 { return s.dropped.Load() }

func (s *Sink) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

func (s *Sink) run() {
	defer close(s.done)
	var lines []byte
	for range s.signal {
		for {
			s.mu.Lock()
			lines, s.waiting = s.waiting, lines[:0]
			missing, closed := s.missing, s.closed
			s.missing = 0
			s.mu.Unlock()
			if missing > 0 {
				lines = append(lines, s.notice(missing)...)
			}
			if len(lines) == 0 {
				if closed {
					return
				}
				break
			}
			s.write(lines)
		}
	}
}

// write hands lines to the output. Lines that it does not take are lost: to try again would keep newer lines from it.
func (s *Sink) write(lines []byte) {
	n, err := s.w.Write(lines)
	if err != nil {
		s.dropped.Add(uint64(bytes.Count(lines[n:], []byte{'\n'})))
	}
}

// Close waits a moment until the output has taken what is queued. Lines that come later are dropped.
func (s *Sink) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
	patience := time.NewTimer(closePatience)
	defer patience.Stop()
	select {
	case <-s.done:
	case <-patience.C:
	}
	return nil
}
