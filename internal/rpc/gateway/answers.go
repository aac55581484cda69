package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// freeAnswerBytes of an answer are not counted: nearly all are smaller, and need not wait.
	freeAnswerBytes = 4 << 10
	// copies is how many times an answer is in memory: as a message, and as JSON, in base64.
	copies = 3
	// writePatience is how long a client may take to accept writeBytes, or it has gone; and how long a stream waits for memory.
	writePatience = 30 * time.Second
	writeBytes    = 64 << 10
)

var errTooManyAnswers = status.Error(codes.ResourceExhausted,
	"quorate: the JSON answers under way take too much memory at this member, or those to this address: "+
		"ask again later, for less, or by gRPC")

// Budget is the memory of all answers of a member: *answers.Budget.
type Budget interface {
	Lend(ctx context.Context, bytes int64, patient time.Duration) (giveBack func(), err error)
}

// answering counts what answers of a kind take beside the messages that they are made of.
type answering struct {
	budget  Budget
	patient time.Duration // how long one may wait for memory

	bytes, waiting atomic.Int64
	refused        atomic.Uint64
}

// answers are those of one call, which ctx identifies. Its methods are called by one goroutine.
type answers struct {
	ctx      context.Context
	of       *answering
	taken    int64
	giveBack func()
}

// take waits for room for the next answer of the call. The one before it was sent.
func (a *answers) take(_ context.Context, size int) error {
	a.release()
	if size <= freeAnswerBytes {
		return nil
	}
	weight := copies * int64(size)
	a.of.waiting.Add(1)
	giveBack, err := a.of.budget.Lend(a.ctx, weight, a.of.patient)
	a.of.waiting.Add(-1)
	switch {
	case err != nil && a.ctx.Err() != nil:
		return a.ctx.Err()
	case err != nil:
		a.of.refused.Add(1)
		return errTooManyAnswers
	}
	a.taken, a.giveBack = weight, giveBack
	a.of.bytes.Add(weight)
	return nil
}

func (a *answers) release() {
	if a.giveBack != nil {
		a.of.bytes.Add(-a.taken)
		a.giveBack()
		a.giveBack = nil
	}
}

// pacedWriter gives up a client that takes nothing for too long, and says nothing of it to the handlers, which would log it:
// a client that has gone needs no answer, and the call ends.
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
