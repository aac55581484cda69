package k8s

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	progressEvery = 100 * time.Millisecond
	retryAfter    = 50 * time.Millisecond
	requestLimit  = 10 * time.Second
)

// watch is one API server's watch of one resource.
type watch struct {
	resource  resource
	client    *clientv3.Client
	checker   *Checker
	reached   atomic.Int64 // the checker's, for others
	ledger    *ledger
	step      *atomic.Pointer[recorder]
	cancelled *atomic.Int64 // of all watches
}

// run watches, and watches again where that ends, until the context does.
func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		w.cancelled.Add(1)
		w.step.Load().note("cancelled watch of "+w.resource.String(), err)
		if errors.Is(err, rpctypes.ErrCompacted) {
			if listed, at, err := states(ctx, w.client, w.resource); err == nil {
				w.checker.Restart(at, listed)
			}
		}
		pause(ctx, retryAfter)
	}
}

// once watches from where the checker stands until the watch is cancelled, and returns why it was.
func (w *watch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	answers := w.client.Watch(ctx, prefixes[w.resource], clientv3.WithPrefix(), clientv3.WithRev(w.checker.reached+1),
		clientv3.WithPrevKV(), clientv3.WithProgressNotify())
	for answer := range answers {
		now := time.Now()
		switch {
		case answer.Err() != nil:
			return answer.Err()
		case answer.IsProgressNotify():
			w.checker.Progress(answer.Header.Revision)
		default:
			w.arrived(answer.Events, now)
			w.checker.Response(answer.Events)
		}
		w.reached.Store(w.checker.reached)
	}
	return errors.New("the client closed it")
}

// arrived notes how long ago each value was sent, and when the keys of a lease were deleted.
func (w *watch) arrived(got []*clientv3.Event, now time.Time) {
	step := w.step.Load()
	for _, e := range got {
		if e.Type != clientv3.EventTypeDelete {
			step.told(sent(e.Kv.Value), now)
		} else if e.PrevKv != nil && e.PrevKv.Lease != 0 {
			w.ledger.expire(e.PrevKv.Lease, now)
		}
	}
}

// askForProgress asks on the stream of the watch, which the client finds by the context's metadata.
func (w *watch) askForProgress(ctx context.Context) {
	ctx = clientv3.WithRequireLeader(ctx)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = w.client.RequestProgress(ctx) // where there is no stream now, there will be one
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
