package trail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/base/monotime"
)

// Port is where a sink writes.
type Port interface {
	// Write writes whole lines, and returns how many of their bytes were taken: fewer only with an error, a *RefusedError if
	// the next line will never be taken.
	Write(lines []byte) (n int, err error)
}

// FilePort is a Port whose lines stay in files.
type FilePort interface {
	Port
	// Look returns why another file has to be begun, by audit's word; empty: the file is the one that is written to.
	Look() (why string, err error)
	// Full reports whether so many more bytes do not fit into the file.
	Full(more int) bool
	// Renew begins another file: in the place of one that is gone, or behind one that is full, which it puts aside.
	Renew(why string) error
	// Sync returns once all that was written is on disk.
	Sync() error
	// Base is the name of the file, without its directory.
	Base() string
	// Close gives up the file.
	Close() error
}

// Times of a sink.
const (
	lookEvery  = time.Second            // whether the file is still there
	retryAfter = 250 * time.Millisecond // of a write that failed
)

// chunkBytes is how much is chained and written at once.
const chunkBytes = 64 << 10

// Sink is one place to which records go.
type Sink struct {
	name     string
	required bool
	port     Port
	file     FilePort // the same; nil: it is no file
	most     int      // bytes of the records that are held

	mu      sync.Mutex
	waiting []byte    // bodies
	since   time.Time // when the first of them came
	records uint64    // in waiting
	lost    uint64    // since the last record that said so

	taken, dropped, failed atomic.Uint64
	oldest                 monotime.Atomic // when the oldest record came that the port has not taken; unset: there is none
	stuck                  atomic.Pointer[string]

	// Of the goroutine that calls Turn.
	chain        audit.Chain
	bodies       []byte // taken from waiting; those before chained are in out
	chained      int
	out          []byte
	outAt        int // what the port has taken of out
	marks        []mark
	count        uint64 // records in bodies
	refusals     uint64 // of these, by the port
	began        bool
	why          string // of the next file record; empty: none is due
	torn         int
	gone         string    // why another file has to be begun; empty: the file is there
	looked, next time.Time // when the file was looked at; before when nothing is tried
}

// mark is a place between two lines of out.
type mark struct {
	out, bodies int
	chain       audit.Chain
}

// Resume says where the chain of a file goes on.
type Resume struct {
	Chain audit.Chain
	Why   string // audit.Begins or audit.Resumes
	Torn  int    // bytes of an unfinished line behind the last record
}

// SinkOptions say what a sink is.
type SinkOptions struct {
	Name     string // for metrics and the log
	Port     Port   // a FilePort, if it is a file
	Required bool
	From     Resume
}

func newSink(o SinkOptions, member uint64, most int) *Sink {
	s := &Sink{name: o.Name, required: o.Required, port: o.Port, most: most, chain: o.From.Chain, why: o.From.Why,
		torn: o.From.Torn}
	s.chain.Member = member
	s.file, _ = o.Port.(FilePort)
	return s
}

// offer takes a body, if there is room. That of a call which was refused takes no room from those that pass: clients repeat
// it as fast as they can.
func (s *Sink) offer(now time.Time, body []byte, refused bool) (wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.room()
	if refused {
		room /= 2
	}
	if len(s.waiting)+len(body) > room {
		s.dropped.Add(1)
		s.lost++
		return false
	}
	if wake = len(s.waiting) == 0; wake {
		s.since = now
		s.oldest.SetIfUnset(now)
	}
	s.waiting = append(s.waiting, body...)
	s.records++
	return wake
}

// room is for the bodies that wait: as much is with the writer, and slices that grow may be twice as long.
func (s *Sink) room() int { return s.most / 4 }

// halfFull reports whether a required sink has to be relieved before more calls are taken: what is under way may still need
// room.
func (s *Sink) halfFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) > s.room()/2
}

// overdue returns for how long the sink has not taken its oldest record.
func (s *Sink) overdue(now time.Time) time.Duration {
	oldest, waits := s.oldest.Get()
	if !waits {
		return 0
	}
	return now.Sub(oldest)
}

// Turn does what is due, and returns when to call it again at the latest. It waits for the port.
func (s *Sink) Turn(now time.Time) time.Duration {
	if s.file != nil && s.gone == "" && !now.Before(s.next) && now.Sub(s.looked) >= lookEvery {
		why, err := s.file.Look()
		if s.looked, s.gone = now, why; err != nil {
			s.trouble(now, err)
			s.looked = time.Time{} // nothing is written before it has been seen
		}
	}
	for !now.Before(s.next) && (s.gone == "" || s.renew(now, s.gone)) && s.step(now) {
	}
	again := lookEvery
	if now.Before(s.next) {
		again = min(again, s.next.Sub(now))
	}
	return again
}

// renew begins another file. A line that was written only in part is written there.
func (s *Sink) renew(now time.Time, why string) bool {
	s.gone = why // nothing is written before it has been renewed
	if err := s.file.Renew(why); err != nil {
		s.trouble(now, err)
		return false
	}
	s.rollBack()
	s.why, s.torn, s.gone = why, 0, ""
	return true
}

// rollBack forgets what was chained of lines that are not written as a whole.
func (s *Sink) rollBack() {
	if s.outAt == len(s.out) {
		s.out, s.outAt, s.marks = s.out[:0], 0, s.marks[:0]
		return
	}
	at := s.marks[0]
	for _, m := range s.marks {
		if m.out <= s.outAt {
			at = m
		}
	}
	s.chain, s.chained = at.chain, at.bodies
	s.out, s.outAt, s.marks = s.out[:0], 0, s.marks[:0]
}

// step chains and writes one chunk. It returns false if there is none, or if it failed.
func (s *Sink) step(now time.Time) (more bool) {
	if s.outAt == len(s.out) {
		if s.note(); !s.fill(now) {
			return false
		}
	}
	n, err := s.port.Write(s.out[s.outAt:])
	s.outAt += n
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Bytes > 0 && !s.required {
		s.skip(refused)
		err = nil
	}
	if err != nil {
		s.trouble(now, err)
		return false
	}
	s.stuck.Store(nil)
	s.note()
	return true
}

// skip drops a record that the port refuses for good.
func (s *Sink) skip(r *RefusedError) {
	s.outAt += r.Bytes
	s.refusals++
	s.dropped.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
}

// note counts what the port has taken.
func (s *Sink) note() {
	if s.chained < len(s.bodies) {
		return
	}
	s.taken.Add(s.count - min(s.count, s.refusals))
	s.bodies, s.chained, s.count, s.refusals = s.bodies[:0], 0, 0, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest.Unset()
	if len(s.waiting) > 0 {
		s.oldest.Set(s.since)
	}
}

// fill chains the next chunk into out.
func (s *Sink) fill(now time.Time) bool {
	s.out, s.outAt, s.marks = s.out[:0], 0, s.marks[:0]
	if s.chained == len(s.bodies) && !s.take(now) && s.why == "" {
		return false
	}
	if s.file != nil && s.began && s.why == "" && s.file.Full(lineBytes+len(s.body())) {
		if !s.renew(now, audit.Rotated) {
			return false
		}
	}
	s.mark()
	if s.why != "" {
		s.out = s.chain.Append(s.out, s.chain.FileBody(nil, now, s.why, s.torn))
		s.mark()
	}
	s.why, s.torn, s.began = "", 0, true
	for s.chained < len(s.bodies) && len(s.out) < chunkBytes {
		body := s.body()
		if s.file != nil && len(s.out) > 0 && s.file.Full(len(s.out)+lineBytes+len(body)) {
			break // the next chunk begins another file
		}
		s.out = s.chain.Append(s.out, body)
		s.chained += len(body)
		s.mark()
	}
	return len(s.out) > 0
}

// lineBytes is more than a line has beside its body: number, member and sum.
const lineBytes = 128

// body returns the next body that is not chained; empty: there is none.
func (s *Sink) body() []byte {
	rest := s.bodies[s.chained:]
	return rest[:bytes.IndexByte(rest, '\n')+1]
}

func (s *Sink) mark() { s.marks = append(s.marks, mark{len(s.out), s.chained, s.chain}) }

// take takes what waits.
func (s *Sink) take(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies, s.waiting, s.chained = s.waiting, s.bodies[:0], 0
	s.count, s.records = s.records, 0
	if s.lost > 0 { // they came when there was no room for more
		s.bodies = audit.EventBody(s.bodies, now, audit.EventLost, s.lost,
			"the output did not take them in time, or refused them")
		s.lost = 0
	}
	return len(s.bodies) > 0
}

// trouble notes an error, and when to try again.
func (s *Sink) trouble(now time.Time, err error) {
	text := err.Error()
	s.stuck.Store(&text)
	s.failed.Add(1)
	s.next = now.Add(retryAfter)
}

// Trouble returns why the port takes nothing at present; empty: it does, or nothing was tried.
func (s *Sink) Trouble() string {
	if text := s.stuck.Load(); text != nil {
		return *text
	}
	return ""
}

// Head returns the head of the chain once all before it is on disk, if the sink is a file that was written to since since, the
// sequence of the head before.
func (s *Sink) Head(now time.Time, since uint64) (audit.Head, bool, error) {
	if s.file == nil || s.gone != "" || s.outAt < len(s.out) || s.chain.Sequence <= since || s.Trouble() != "" {
		return audit.Head{}, false, nil
	}
	if err := s.file.Sync(); err != nil {
		s.trouble(now, err)
		return audit.Head{}, false, fmt.Errorf("%s: %w", s.name, err)
	}
	return audit.Head{Member: s.chain.Member, Chain: s.chain.ID, Sequence: s.chain.Sequence, At: now, Sum: s.chain.Sum,
		File: s.file.Base()}, true, nil
}

// ends writes the last record, if the port takes it, and closes a file.
func (s *Sink) ends(now time.Time) {
	s.next = time.Time{}
	s.Turn(now)
	s.offer(now, audit.EventBody(nil, now, audit.EventEnds, 0, ""), false)
	s.Turn(now)
	if port, ok := s.port.(io.Closer); ok {
		_ = port.Close()
	}
}
