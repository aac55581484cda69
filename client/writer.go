package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

// farewellTime bounds how long Close waits for members.
const farewellTime = time.Second

// dial returns the service behind an endpoint.
type dial func(endpoint string) (quoratepb.WriterClient, error)

// writer sends writes to the cluster over one stream at a time: to the member that answered first, and to another one when
// that stream ends.
type writer struct {
	table   *table
	voters  *voterStreams
	far     time.Duration // FarAway, or what a test sets
	parting time.Duration // farewellTime, or what a test sets
	members *follower
	dial    dial

	ctx     context.Context
	cancel  context.CancelFunc
	closing chan struct{}
	once    sync.Once
	done    chan struct{}
}

func newWriter(ctx context.Context, members *follower, dial dial) *writer {
	w := &writer{
		table: newTable(), members: members, dial: dial, closing: make(chan struct{}), done: make(chan struct{}),
		far: nativeclient.FarAway, parting: farewellTime,
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.voters = newVoterStreams(w)
	go w.run()
	return w
}

// write sends one request and waits for its response.
func (w *writer) write(ctx context.Context, kind quoratepb.Proposal_Kind, in, out proto.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	request, err := proto.Marshal(in)
	if err != nil {
		return err
	}
	c, err := w.table.add(kind, request)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if w.table.abandon(c) {
			return ctx.Err()
		}
		<-c.done
	}
	switch {
	case c.InDoubt:
		return &InDoubtError{Cause: c.Err}
	case c.Err != nil:
		return c.Err
	}
	return proto.Unmarshal(c.Response, out)
}

// close retires the sessions, fails the writes that wait, and ends the writer.
func (w *writer) close() {
	w.once.Do(func() {
		w.table.with(func(t *nativeclient.Table) { t.Close(ErrClosed) })
		close(w.closing)
	})
	select {
	case <-w.done:
	case <-time.After(2 * w.parting):
		w.cancel()
		<-w.done
	}
}

// run keeps a stream open from the first write on.
func (w *writer) run() {
	defer close(w.done)
	defer func() {
		w.table.with(func(t *nativeclient.Table) { t.Close(ErrClosed) })
		w.table.with(func(t *nativeclient.Table) { t.Fail(ErrClosed, true) })
		w.voters.close()
		w.cancel()
	}()
	if !w.awaitFirst() {
		return
	}
	var backoff time.Duration
	for {
		l, err := w.connect()
		switch {
		case err == nil:
			backoff = 0
			w.table.with((*nativeclient.Table).Restart)
			l.serve()
		case unsupported(err):
			w.table.with(func(t *nativeclient.Table) { t.Fail(ErrUnsupported, false) })
		case refused(err) != nil:
			w.table.with(func(t *nativeclient.Table) { t.Fail(refused(err), false) })
		}
		backoff = min(max(2*backoff, nativeclient.FirstBackoff), nativeclient.MaxBackoff)
		select {
		case <-time.After(backoff/2 + rand.N(backoff)):
		case <-w.closing:
			return
		case <-w.ctx.Done():
			return
		}
	}
}

// awaitFirst waits for the first write; false means that the client was closed.
func (w *writer) awaitFirst() bool {
	for !w.table.waiting() {
		select {
		case <-w.table.wake:
		case <-w.closing:
			return false
		case <-w.ctx.Done():
			return false
		}
	}
	return true
}
