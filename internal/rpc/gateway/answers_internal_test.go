package gateway

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Ensure that what one address does not read stops its own streams, refuses its own calls, and concerns nobody else.
func TestAnswerBudget_enter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b answerBudget
		half := maxHostAnswers / copies / 2
		of := func(host string, waits bool) *answers { return &answers{budget: &b, host: host, waits: waits} }
		ctx, cancel := context.WithCancel(context.Background())
		one, two := of("a", true), of("a", true)
		for _, a := range []*answers{one, two, of("b", true)} {
			if err := a.take(ctx, half); err != nil {
				t.Fatal(err)
			}
		}
		if err := of("a", false).take(ctx, half); !errors.Is(err, errTooManyAnswers) {
			t.Errorf("a call without room: got %v", err)
		}
		if err := of("a", false).take(ctx, freeAnswerBytes); err != nil {
			t.Errorf("a small answer: got %v", err)
		}
		if err := of("c", false).take(ctx, maxHostAnswers/2); err != nil {
			t.Errorf("a large answer to who has no other: got %v", err)
		}
		waited := make(chan error)
		go func() { waited <- of("a", true).take(ctx, half) }()
		go func() { waited <- of("a", true).take(ctx, half) }()
		synctest.Wait()
		if _, waiting, _ := b.counts(); waiting != 2 {
			t.Errorf("%d wait", waiting)
		}
		if err := one.take(ctx, 1); err != nil { // the next answer of a stream: the one before was sent
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("the first that waited: got %v", err)
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("the second that waited: got %v", err)
		}
		two.release()
		if len(b.hosts) != 3 {
			t.Errorf("%d addresses are remembered", len(b.hosts))
		}
	})
}

// stuckWriter is a client that takes nothing.
type stuckWriter struct {
	http.ResponseWriter
	until time.Time
}

func (s *stuckWriter) SetWriteDeadline(t time.Time) error { s.until = t; return nil }
func (s *stuckWriter) Write([]byte) (int, error)          { return 0, errors.New("i/o timeout") }

// Ensure that a client that takes nothing ends its call, and that the handlers have nothing to log.
func TestPacedWriter_Write(t *testing.T) {
	ctx, end := context.WithCancelCause(context.Background())
	stuck := new(stuckWriter)
	w := newPacedWriter(stuck, end)
	if n, err := w.Write(make([]byte, 3*writeBytes)); n != 3*writeBytes || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if ctx.Err() == nil || time.Until(stuck.until) > writePatience || stuck.until.IsZero() {
		t.Errorf("the call ended with %v, the deadline was %v", ctx.Err(), stuck.until)
	}
	if w.done(); !stuck.until.IsZero() {
		t.Error("the connection keeps the deadline")
	}
}
