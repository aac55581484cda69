package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// maxAnswers bounds the bytes of all answers that are turned into JSON and sent, maxHostAnswers those of one address, and
	// as many of streams. A single larger one is let through when nothing else of its address is under way.
	maxAnswers     = 384 << 20
	maxHostAnswers = 96 << 20
	// freeAnswerBytes of an answer are not counted: nearly all are smaller, and need not wait.
	freeAnswerBytes = 4 << 10
	// copies is how many times an answer is in memory: as a message, and as JSON, in base64.
	copies = 3
	// writePatience is how long a client may take to accept writeBytes, or it has gone.
	writePatience = 30 * time.Second
	writeBytes    = 64 << 10
)

var errTooManyAnswers = status.Error(codes.ResourceExhausted,
	"quorate: the JSON answers under way take too much memory at this member, or those to this address: "+
		"ask again later, for less, or by gRPC")

// answerBudget counts the bytes of answers. A stream that finds no room waits: what a client does not read keeps the streams of
// its address waiting until writePatience is over, and those of other addresses do not notice. The answer to a call is refused
// then: it holds memory that all answers of this member share.
type answerBudget struct {
	mu      sync.Mutex
	bytes   int64
	hosts   map[string]*answersOfHost
	waiting int
	refused uint64
}

type answersOfHost struct {
	bytes int64
	users int           // that have bytes or wait for some
	freed chan struct{} // closed when some were given back, anywhere
}

// answers are those of one call. Its methods are called by one goroutine.
type answers struct {
	budget *answerBudget
	host   string
	waits  bool
	taken  int64
}

// take waits for room for the next answer of the call. The one before it was sent.
func (a *answers) take(ctx context.Context, size int) error {
	a.release()
	if size <= freeAnswerBytes {
		return nil
	}
	weight := copies * int64(size)
	if err := a.budget.enter(ctx, a.host, weight, a.waits); err != nil {
		return err
	}
	a.taken = weight
	return nil
}

func (a *answers) release() {
	if a.taken > 0 {
		a.budget.leave(a.host, a.taken)
		a.taken = 0
	}
}

func (b *answerBudget) enter(ctx context.Context, host string, weight int64, waits bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.open(host)
	if err := b.await(ctx, h, weight, waits); err != nil {
		b.close(host, h)
		return err
	}
	b.bytes += weight
	h.bytes += weight
	return nil
}

func (b *answerBudget) await(ctx context.Context, h *answersOfHost, weight int64, waits bool) error {
	b.waiting++
	defer func() { b.waiting-- }()
	for !b.fits(h, weight) {
		if !waits {
			b.refused++
			return errTooManyAnswers
		}
		freed := h.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (b *answerBudget) fits(h *answersOfHost, weight int64) bool {
	inAll := b.bytes+weight <= maxAnswers || b.bytes == 0
	return inAll && (h.bytes+weight <= maxHostAnswers || h.bytes == 0)
}

func (b *answerBudget) open(host string) *answersOfHost {
	if b.hosts == nil {
		b.hosts = make(map[string]*answersOfHost)
	}
	h := b.hosts[host]
	if h == nil {
		h = &answersOfHost{freed: make(chan struct{})}
		b.hosts[host] = h
	}
	h.users++
	return h
}

func (b *answerBudget) close(host string, h *answersOfHost) {
	if h.users--; h.users == 0 {
		delete(b.hosts, host)
	}
}

// leave gives bytes back, and lets those look again who may have room now: of the same address, or of all if there was none.
func (b *answerBudget) leave(host string, weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	scarce := b.bytes > maxAnswers-maxHostAnswers
	h := b.hosts[host]
	b.bytes -= weight
	h.bytes -= weight
	b.close(host, h)
	for other, o := range b.hosts {
		if other == host || scarce {
			close(o.freed)
			o.freed = make(chan struct{})
		}
	}
}

func (b *answerBudget) counts() (bytes int64, waiting int, refused uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes, b.waiting, b.refused
}

// pacedWriter gives up a client that takes nothing for too long, and says nothing of it to the handlers, which would log it:
// who has gone needs no answer, and the call ends.
type pacedWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
	end  context.CancelCauseFunc
	gone bool
}

func newPacedWriter(w http.ResponseWriter, end context.CancelCauseFunc) *pacedWriter {
	return &pacedWriter{ResponseWriter: w, conn: http.NewResponseController(w), end: end}
}

// Unwrap lets http.ResponseController find what is below.
func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements http.ResponseWriter.
func (p *pacedWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0 && !p.gone; {
		n := min(len(rest), writeBytes)
		p.try(func() error {
			_, err := p.ResponseWriter.Write(rest[:n])
			return err
		})
		rest = rest[n:]
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (p *pacedWriter) Flush() { p.try(p.conn.Flush) }

// try sends something in time, or ends the call.
func (p *pacedWriter) try(send func() error) {
	if p.gone {
		return
	}
	err := p.conn.SetWriteDeadline(time.Now().Add(writePatience))
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		err = send()
	}
	if err != nil {
		p.gone = true
		p.end(nil)
	}
}

// done lets the connection serve other requests.
func (p *pacedWriter) done() { _ = p.conn.SetWriteDeadline(time.Time{}) } // where it fails, the connection has ended
