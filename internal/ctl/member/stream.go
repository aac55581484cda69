package member

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/ctl/command"
)

// outageTimeouts is for how many timeouts of the command line a stream that was there may be away before we give up.
const outageTimeouts = 12

// streamItem is what the stream of events has to say. One field is set.
type streamItem struct {
	event *quoratepb.Event
	lost  error // the stream broke and is being opened again
	end   error // nothing will be seen any more
}

// openStream opens the stream of events, and opens it again whenever it breaks: each time it begins with a KIND_STATE. The
// channel is closed when the context ends or after an end.
func (s *session) openStream(ctx context.Context, r *quoratepb.WatchRequest) <-chan streamItem {
	out := make(chan streamItem)
	w := &watcher{session: s, request: r, out: out, heard: s.answered}
	go func() {
		defer close(out)
		w.run(ctx)
	}()
	return out
}

// watcher holds one stream after the other.
type watcher struct {
	session *session
	request *quoratepb.WatchRequest
	out     chan<- streamItem
	heard   time.Time // when the cluster said something last; zero if it never has
	lost    bool      // it was told that nothing is heard
}

func (w *watcher) run(ctx context.Context) {
	for {
		err := w.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case w.heard.IsZero(), !passes(err),
			time.Since(w.heard) > outageTimeouts*w.session.Timeout:
			w.tell(ctx, streamItem{end: w.session.explainMembership(ctx, err)})
			return
		case !w.lost:
			w.lost = true
			w.tell(ctx, streamItem{lost: err})
		}
		if broadcast.Pause(ctx, retryPause) != nil {
			return
		}
	}
}

func (w *watcher) tell(ctx context.Context, s streamItem) {
	select {
	case w.out <- s:
	case <-ctx.Done():
	}
}

// follow passes on the events of one stream until it breaks. Only the first event is due within a time: a cluster in
// which nothing happens is quiet.
func (w *watcher) follow(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	due := time.AfterFunc(w.session.Timeout, func() { cancel(context.DeadlineExceeded) })
	defer due.Stop()
	var options []grpc.CallOption
	if w.heard.IsZero() {
		var release func()
		ctx, release = command.CancelIfRefused(ctx, w.session.client.Endpoints())
		defer release()
	} else {
		options = append(options, grpc.WaitForReady(true))
	}
	stream, err := w.session.api.Watch(ctx, w.request, options...)
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		due.Stop()
		w.heard, w.lost = time.Now(), false
		w.tell(parent, streamItem{event: event})
	}
}

// passes tells errors of a stream that another try may not meet from those that it will.
func passes(err error) bool {
	if errors.Is(err, io.EOF) || command.Silent(err) {
		return true
	}
	switch status.Code(err) {
	case codes.Internal, codes.Unknown, codes.Aborted, codes.ResourceExhausted:
		return true
	}
	return false
}
