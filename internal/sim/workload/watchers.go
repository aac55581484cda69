package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/storage/engine"
)

// watcher watches a range through one member after another and resumes where it stopped.
type watcher struct {
	load   *Load
	seen   *check.Watch
	target Target
	life   int
	stream *watch.Stream
	key    []byte
	end    []byte
	id     int64
	slow   time.Duration
}

// over is a context that has ended: with it a Stream never waits.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// startWatcher begins a watch of everything, of one prefix, of one slot's keys, or of the keys that are attached to leases.
func (l *Load) startWatcher(id int) {
	w := &watcher{load: l, slow: time.Duration(5+l.rng.IntN(200)) * time.Millisecond}
	if l.rng.IntN(4) == 0 {
		w.slow = 3 * time.Second
	}
	switch id % 4 {
	case 0:
		w.key, w.end = []byte{0}, []byte{0}
	case 1:
		w.key, w.end = []byte("k"), []byte("l")
	case 2:
		at := l.rng.IntN(l.mix.Keys)
		w.key, w.end = fmt.Appendf(nil, "k%02d", at), fmt.Appendf(nil, "k%02d/", at)
	case 3:
		w.key, w.end = []byte("l/"), []byte("m")
	}
	w.seen = l.suite.NewWatch(fmt.Sprintf("watch %d of [%q, %q)", id, w.key, w.end), w.key, w.end, 1)
	l.watched = append(l.watched, w)
	l.world.After(l.pause(), w.poll)
}

// poll reads the events that have arrived.
func (w *watcher) poll() {
	l := w.load
	l.world.After(w.slow, w.poll)
	if l.rng.IntN(200) == 0 && w.stream != nil {
		w.stream.Close()
		w.stream = nil
	}
	if (w.stream == nil || w.target.Life() != w.life) && !w.connect() {
		return
	}
	if l.rng.IntN(10) == 0 {
		w.stream.RequestProgress()
	}
	for range 64 {
		responses, err := w.stream.Next(over)
		if errors.Is(err, context.Canceled) {
			return
		}
		if errors.Is(err, engine.ErrNoSpace) { // the member ends for the same reason
			w.stream = nil
			return
		}
		if err != nil {
			l.suite.Report("watch", fmt.Sprintf("reading a stream: %v", err))
			return
		}
		for i := range responses {
			if !w.take(&responses[i]) {
				return
			}
		}
	}
}

func (w *watcher) connect() bool {
	w.stream = nil
	if w.target = w.load.target(); w.target == nil {
		return false
	}
	w.life = w.target.Life()
	w.stream = w.target.Hub().Open()
	id, ok := w.stream.Create(watch.Request{Key: w.key, End: w.end, Start: w.seen.Next(), PrevKV: w.slow%2 == 0})
	if !ok {
		w.load.suite.Report("watch", "a watch was refused")
	}
	w.id = id
	return ok
}

// take reports a response to the checker; false means that the stream is over.
func (w *watcher) take(r *watch.Response) bool {
	switch {
	case r.Canceled:
		if r.Compact == 0 {
			w.load.suite.Report("watch", fmt.Sprintf("a watch was cancelled: %v", r.Err))
		}
		w.seen.Compacted(r.Compact)
		w.stream.Close()
		w.stream = nil
		return false
	case r.Created:
	case r.Batch != nil:
		w.load.Events += uint64(len(r.Batch.Events))
		events := r.Batch.Events
		if w.load.mix.LoseEvents && w.load.rng.IntN(100) == 0 {
			events = events[1:]
		}
		w.seen.Delivered(events)
	default:
		w.seen.Progress(r.Revision)
	}
	return true
}

// CaughtUp reports whether every watcher has seen all changes of its range up to a revision.
func (l *Load) CaughtUp(revision kv.Revision) bool {
	for _, w := range l.watched {
		if !w.seen.HasSeen(revision) {
			return false
		}
	}
	return true
}
