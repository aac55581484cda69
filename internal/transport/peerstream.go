package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/identity"
)

// peerStream is one stream to a peer, opened again and again until the peer is dropped:
//
//	  +---------> wait (backoff) <-------------+
//	  |                |                       | failed or refused
//	  | broke          v                       |
//	established <-- dial, hello both ways -----+
//
// Every attempt has a gRPC connection of its own, so that backoff, the choice of URL and the reason of a failure are
// ours and not hidden in a connection that heals itself.
type peerStream struct {
	p     *peer
	kind  streamKind
	box   *outbox
	count counters

	ctx    context.Context
	cancel context.CancelCauseFunc
	hangs  chan struct{} // capacity one: end the stream in good order
	kicks  chan struct{} // capacity one: do not wait for the backoff
	tried  chan struct{} // closed after the first attempt succeeded or failed
	tryOne sync.Once

	since   monotime.Atomic // unset while down
	conn    atomic.Pointer[dialed]
	claim   atomic.Pointer[identity.Claim] // of the process that answers; nil while down
	heard   monotime.Atomic                // when something arrived last
	breaker atomic.Pointer[context.CancelCauseFunc]
	sent    atomic.Uint64 // bytes of this session
	acked   atomic.Uint64 // of them, known to have arrived
	probed  uint64        // of them, asked about; the writer's own

	generation uint64 // of the peer when this session began; run's own

	pingMu sync.Mutex
	pinged time.Time // when the ping that is out left; zero if none is
	number uint64
}

func newPeerStream(p *peer, kind streamKind) *peerStream {
	l := &peerStream{p: p, kind: kind, hangs: make(chan struct{}, 1), kicks: make(chan struct{}, 1),
		tried: make(chan struct{})}
	l.box = newOutbox(limits{messages: p.t.options.Queue.Messages, bytes: p.t.options.Queue.Bytes, largest: maxFrameBytes})
	l.ctx, l.cancel = context.WithCancelCause(p.t.ctx)
	return l
}

// run keeps the stream up.
func (l *peerStream) run() {
	defer l.cancel(nil)
	wait := l.p.t.options.Times.BackoffMin
	for {
		began := time.Now()
		up, err := l.session()
		l.tryOne.Do(func() { close(l.tried) })
		if l.ctx.Err() != nil || l.box.isClosed() {
			return
		}
		switch {
		case up && !isOrderly(err):
			l.p.lost(l.generation, err)
		case !up:
			l.p.report(err)
		}
		if up && time.Since(began) > l.p.t.options.Times.BackoffMax {
			wait = l.p.t.options.Times.BackoffMin
		}
		if isRefusal(err) {
			// A process that refuses will do so again soon; perhaps another URL leads to our peer.
			l.p.nextAddress()
			wait = l.p.t.options.Times.BackoffMax
		}
		// Half of the pause is chance, so that members that lost each other together do not return in step.
		timer := time.NewTimer(wait/2 + rand.N(wait/2+1))
		select {
		case <-timer.C:
		case <-l.kicks:
		case <-l.ctx.Done():
		}
		timer.Stop()
		wait = min(2*wait, l.p.t.options.Times.BackoffMax)
	}
}

// isOrderly reports whether the other side, or we, ended the stream on purpose and are still alive.
func isOrderly(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, errOrderly) || status.Code(err) == codes.Aborted
}

// session is one connection, from dialling to its end. It reports whether the stream was established.
func (l *peerStream) session() (up bool, err error) {
	ctx, cancel := context.WithCancelCause(l.ctx)
	defer cancel(nil)
	select {
	case <-l.hangs: // meant for an earlier session
	default:
	}
	if l.box.isClosed() {
		return false, errOrderly
	}
	conn, err := l.p.dial()
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	s, theirs, err := l.open(ctx, cancel, conn)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return false, err
	}
	l.establish(conn, &theirs.claim)
	defer l.abandon()
	err = l.exchange(ctx, cancel, s, &theirs)
	return true, err
}

// open opens the stream and shakes hands.
func (l *peerStream) open(
	ctx context.Context, cancel context.CancelCauseFunc, conn *dialed,
) (grpc.ClientStream, hello, error) {
	s, err := conn.NewStream(ctx, &messagesDesc, messagesMethod, grpc.MaxCallRecvMsgSize(wayBackBytes+softFrameBytes))
	if err != nil {
		return nil, hello{}, err
	}
	late := time.AfterFunc(l.p.t.options.Times.DeadAfter, func() { cancel(ErrSilentPeer) })
	defer late.Stop()
	theirs, err := l.p.t.shakeHands(ctx, s, l.p.hello(l.kind))
	return s, theirs, err
}

// shakeHands sends our hello and judges the one that comes back.
func (t *Transport) shakeHands(ctx context.Context, s stream, ours hello) (theirs hello, err error) {
	// A failed send only says that the stream is over; why, the receive knows.
	if err := s.SendMsg(&outFrame{plain: ours.frame()}); err != nil && !errors.Is(err, io.EOF) {
		return hello{}, err
	}
	var answer inFrame
	if err := s.RecvMsg(&answer); err != nil {
		if errors.Is(err, io.EOF) {
			return hello{}, fmt.Errorf("%w: stream ended before the hello", ErrHandshake)
		}
		if oversized(err) {
			return hello{}, fmt.Errorf("%w: what came instead of a hello is larger than anything that may come", ErrHandshake)
		}
		return hello{}, err
	}
	if theirs, err = decodeHelloFrame(answer.bytes); err != nil {
		return hello{}, err
	}
	if err := theirs.checkAnswer(ours); err != nil {
		return hello{}, err
	}
	t.guard.accepted(theirs.claim.Member)
	if err := t.welcome(ctx, &theirs.claim, identity.Dialled); err != nil {
		return hello{}, err
	}
	t.guard.meet(&theirs.claim)
	return theirs, nil
}

func (l *peerStream) establish(conn *dialed, theirs *identity.Claim) {
	l.sent.Store(0)
	l.acked.Store(0)
	l.probed = 0
	l.generation = l.p.generation.Load()
	l.conn.Store(conn)
	l.heard.Unset()
	l.claim.Store(theirs)
	l.since.Set(time.Now())
	l.box.attach(true)
	// Messages that waited while we were detached have set the wake signal already; a second one does no harm.
	l.box.signal()
	l.p.connected(l.kind, *conn.url.Load())
	l.tryOne.Do(func() { close(l.tried) })
}

func (l *peerStream) abandon() {
	l.box.attach(false)
	l.since.Unset()
	l.conn.Store(nil)
	l.claim.Store(nil)
	l.pingMu.Lock()
	l.pinged = time.Time{}
	l.pingMu.Unlock()
}

// exchange writes and reads until the stream ends, and returns why.
func (l *peerStream) exchange(
	ctx context.Context, cancel context.CancelCauseFunc, s grpc.ClientStream, theirs *hello,
) error {
	w := writer{t: l.p.t, to: l.p.id, stream: s, box: l.box, count: &l.count, hangUps: l.hangs}
	r := reader{t: l.p.t, ctx: ctx, claim: &theirs.claim, stream: s, box: l.box, heard: &l.heard}
	if l.kind == streamOrdered {
		w.packing = l.p.packing(theirs)
		defer w.packing.close()
		w.sent = func(bytes int) error { return l.probe(&w, bytes) }
		r.pong = l.arrived
	} else {
		// The express stream is never full, so a ping without an answer on it means that no process is there. Both streams end
		// then: the ordered one cannot tell silence from a slow link.
		silent := time.AfterFunc(l.p.t.options.Times.DeadAfter, func() {
			cancel(ErrSilentPeer)
			l.p.ordered.breakOff()
		})
		defer silent.Stop()
		w.every, w.tick = l.p.t.options.Times.DeadAfter/4, func() error { return l.ping(&w) }
		r.pong = func(number uint64) {
			silent.Reset(l.p.t.options.Times.DeadAfter)
			l.measure(number)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		switch err := w.run(ctx); {
		case err == nil:
			_ = s.CloseSend()
			time.AfterFunc(drainTimeout, func() { cancel(errOrderly) })
		case errors.Is(err, io.EOF): // the reader learns the reason
		default:
			cancel(err)
		}
	}()
	l.setBreaker(cancel)
	err := r.run()
	l.setBreaker(nil)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(err)
	<-done
	return err
}

// probe asks the peer, every probeBytes, how far it is: that tells what is still in buffers and on the wire.
func (l *peerStream) probe(w *writer, bytes int) error {
	sent := l.sent.Add(uint64(bytes))
	if sent-l.probed < probeBytes {
		return nil
	}
	l.probed = sent
	return w.plain(tickFrame(framePing, sent))
}

// arrived takes the answer to a probe.
func (l *peerStream) arrived(number uint64) {
	if number <= l.sent.Load() && number > l.acked.Load() {
		l.acked.Store(number)
	}
}

// crowded reports whether what is queued or on its way would delay a heartbeat noticeably on a slow link.
func (l *peerStream) crowded() bool {
	acked := l.acked.Load()
	_, queued, _ := l.box.waiting()
	return l.sent.Load()-acked+uint64(queued) > crowdedBytes
}

// ping sends a ping unless one is still out.
func (l *peerStream) ping(w *writer) error {
	if l.p.t.cut(l.p.id) {
		return nil
	}
	l.pingMu.Lock()
	out := !l.pinged.IsZero()
	if !out {
		l.number++
		l.pinged = time.Now()
	}
	number := l.number
	l.pingMu.Unlock()
	if out {
		return nil
	}
	return w.plain(tickFrame(framePing, number))
}

// measure takes the answer to a ping into the round-trip time, smoothed as TCP does.
func (l *peerStream) measure(number uint64) {
	l.pingMu.Lock()
	sample := time.Since(l.pinged)
	valid := number == l.number && !l.pinged.IsZero()
	if valid {
		l.pinged = time.Time{}
	}
	l.pingMu.Unlock()
	if !valid {
		return
	}
	l.p.trips.add(sample)
	l.p.lowest.Add(sample, time.Now())
	was := l.p.rtt.Load()
	if was == 0 {
		l.p.rtt.Store(int64(sample))
		return
	}
	l.p.rtt.Store(was + (int64(sample)-was)/8)
}

func (l *peerStream) upSince() (time.Time, bool) { return l.since.Get() }

// close ends the stream for good, with a moment to send what waits if it is up.
func (l *peerStream) close() {
	l.box.close()
	if _, up := l.upSince(); !up {
		l.cancel(errOrderly)
		return
	}
	l.hangUp()
	time.AfterFunc(drainTimeout, func() { l.cancel(errOrderly) })
}

// hangUp ends the session in good order; the stream connects anew.
func (l *peerStream) hangUp() { offer(l.hangs) }

// retryNow cuts the backoff short: there is reason to believe that the peer is back.
func (l *peerStream) retryNow() { offer(l.kicks) }

func offer(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *peerStream) setBreaker(cancel context.CancelCauseFunc) {
	if cancel == nil {
		l.breaker.Store(nil)
		return
	}
	l.breaker.Store(&cancel)
}

// breakOff ends the session because the peer does not answer.
func (l *peerStream) breakOff() {
	if cancel := l.breaker.Load(); cancel != nil {
		(*cancel)(ErrSilentPeer)
	}
}
