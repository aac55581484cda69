package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/peer"

	kvanswers "github.com/quorate/quorate/internal/limits/answers"
)

// of is the context of a call of a host.
func of(ctx context.Context, host string) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(host)}})
}

// Ensure that answers by JSON are counted in the budget of all answers, that a call without room is refused, that a stream waits for
// room and ends if there is none for long, and that another address is not concerned.
func TestAnswers_take(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 3 << 20
		budget := kvanswers.New(total, total)
		calls, events := &answering{budget: budget}, &answering{budget: budget, patient: writePatience}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		quarter := total / 4 / copies
		first := &answers{ctx: of(ctx, "10.0.0.1"), of: events}
		if err := first.take(ctx, quarter); err != nil || budget.UsedBytes() < total/4-copies {
			t.Fatalf("%v; of the budget of all answers %d are used", err, budget.UsedBytes())
		}
		second := &answers{ctx: of(ctx, "10.0.0.1"), of: calls}
		if err := second.take(ctx, 2*quarter); !errors.Is(err, errTooManyAnswers) || calls.refused.Load() != 1 {
			t.Errorf("a call without room: got %v", err)
		}
		if err := second.take(ctx, freeAnswerBytes); err != nil {
			t.Errorf("a small answer: got %v", err)
		}
		if err := (&answers{ctx: of(ctx, "10.0.0.2"), of: calls}).take(ctx, quarter); err != nil {
			t.Errorf("another address: got %v", err)
		}
		begun, waits := time.Now(), &answers{ctx: of(ctx, "10.0.0.1"), of: events}
		if err := waits.take(ctx, 2*quarter); !errors.Is(err, errTooManyAnswers) || time.Since(begun) < writePatience {
			t.Errorf("a stream without room: got %v after %s", err, time.Since(begun))
		}
		waited := make(chan error)
		go func() { waited <- waits.take(ctx, quarter) }()
		synctest.Wait()
		if err := first.take(ctx, 1); err != nil { // the next answer of a stream: the one before was sent
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Errorf("a stream that waited: got %v", err)
		}
		go func() { waited <- first.take(ctx, 3*quarter) }()
		synctest.Wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("a stream whose client went: got %v", err)
		}
		waits.release()
		if events.bytes.Load() != 0 || events.waiting.Load() != 0 {
			t.Errorf("%d bytes, %d wait", events.bytes.Load(), events.waiting.Load())
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
