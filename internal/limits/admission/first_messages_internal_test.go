package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestFirstMessages_Sweep(t *testing.T) {
	f := NewFirstMessages(FirstMessageLimits{Timeout: 30 * time.Second, Many: 2, ManyTimeout: 2 * time.Second})
	begun := time.Unix(1000, 0)
	var calls []*call
	enter := func(at time.Duration) {
		ctx, err := f.Tap(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := ctx.Value(callKey{}).(*call)
		f.enter(c, begun.Add(at))
		calls = append(calls, c)
	}
	expect := func(at time.Duration, ended ...bool) {
		t.Helper()
		f.Sweep(begun.Add(at))
		for i, want := range ended {
			if got := calls[i].Err() == context.DeadlineExceeded; got != want {
				t.Errorf("after %v call %d has ended: %v, want %v", at, i, got, want)
			}
		}
	}
	enter(0)
	enter(time.Second)
	expect(10*time.Second, false, false)
	// A third makes them many: the oldest goes, then there is none any more.
	enter(10 * time.Second)
	expect(10*time.Second, true, false, false)
	// One whose message came is not ended, however late it is.
	f.leave(calls[1])
	expect(39*time.Second, true, false, false)
	expect(40*time.Second, true, false, true)
	if waiting, ended := f.Counts(); waiting != 0 || ended != 2 {
		t.Errorf("%d wait and %d were ended, want none and 2", waiting, ended)
	}
	f.leave(calls[0]) // by its handler, after it was ended
	if waiting, _ := f.Counts(); waiting != 0 {
		t.Errorf("%d wait, want none", waiting)
	}
}

// endableStream is a stream of a server without a tap.
type endableStream struct {
	grpc.ServerTransportStream
	why chan *status.Status
}

func (s endableStream) WriteStatus(why *status.Status) error {
	s.why <- why
	return nil
}

// Ensure that without a tap the stream of a call is ended whose message does not come in time, and that a stream which cannot
// be ended is not waited for.
func TestFirstMessages_Receive_withoutTap(t *testing.T) {
	f := NewFirstMessages(FirstMessageLimits{Timeout: time.Second})
	stream := endableStream{why: make(chan *status.Status, 1)}
	ctx := grpc.NewContextWithServerTransportStream(context.Background(), stream)
	err := f.Receive(ctx, func() error {
		f.Sweep(time.Now().Add(time.Minute))
		return errors.New("the stream has ended")
	})
	if why := <-stream.why; why.Code() != codes.DeadlineExceeded || status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the stream got %v, the handler %v, want that the time is over", why, err)
	}
	if err := f.Receive(ctx, func() error { return nil }); err != nil {
		t.Errorf("a message in time: got %v", err)
	}
	err = f.Receive(context.Background(), func() error { t.Error("waited for what cannot be ended"); return nil })
	if err == nil {
		t.Error("no error without a stream")
	}
}

func BenchmarkFirstMessages_Receive(b *testing.B) {
	f := NewFirstMessages(FirstMessageLimits{})
	b.ReportAllocs()
	for b.Loop() {
		parent, end := context.WithCancel(context.Background())
		ctx, _ := f.Tap(parent, nil)
		if err := f.Receive(ctx, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
		end()
		<-ctx.Done()
	}
}

func TestFirstMessages_Receive_leavesInAnyOrder(t *testing.T) {
	f := NewFirstMessages(FirstMessageLimits{})
	var calls []*call
	for range 5 {
		ctx, _ := f.Tap(context.Background(), nil)
		c := ctx.(*call)
		f.enter(c, time.Unix(1, 0))
		calls = append(calls, c)
	}
	for n, i := range []int{2, 0, 4, 1, 3} {
		f.leave(calls[i])
		if waiting, _ := f.Counts(); waiting != 4-n {
			t.Fatalf("%d wait after %d left, want %d", waiting, n+1, 4-n)
		}
	}
	if f.waiting.First() != nil || f.waiting.Len() != 0 {
		t.Error("somebody is left in the line")
	}
}
