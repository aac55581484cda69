package client

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/nativeclient"
)

const (
	// connectPatience bounds one attempt to find a member that answers.
	connectPatience = 3 * time.Second
	// leaderGrace is how long a member that knows no leader is held back in favour of one that does.
	leaderGrace = 300 * time.Millisecond
)

// link is a stream to one member: the one that the client writes through, or that of a voterStream.
type link struct {
	w        *writer
	endpoint string
	client   uint64 // the client's id when it began
	stream   grpc.BidiStreamingClient[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	ctx      context.Context
	cancel   context.CancelFunc
	status   *quoratepb.MemberStatus

	leaderless monotime.Atomic // since when the member knows no leader; unset if it knows one
	received   chan struct{}

	mu        sync.Mutex
	roundTrip nativeclient.RoundTrip
}

// attempt is the result of connecting to one endpoint.
type attempt struct {
	link *link
	err  error
}

// connect opens streams to all endpoints at once and takes the first that answers, which is usually the nearest. A
// member that knows no leader is taken only if no other one answers within leaderGrace.
func (w *writer) connect() (*link, error) {
	w.members.signal()
	first, _ := w.members.endpoints()
	l, err := w.race(first)
	if err != nil && w.ctx.Err() == nil {
		w.members.lost()
		_, others := w.members.endpoints()
		if other, otherErr := w.race(others); otherErr == nil {
			l, err = other, nil
		}
	}
	return l, err
}

func (w *writer) race(endpoints []string) (*link, error) {
	if len(endpoints) == 0 {
		return nil, errNoEndpoint
	}
	answers := make(chan attempt, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			l, err := w.open(w.ctx, endpoint)
			answers <- attempt{l, err}
		}()
	}
	var errs []error
	var second *link
	var grace <-chan time.Time
	patience := time.NewTimer(connectPatience)
	defer patience.Stop()
	left := len(endpoints)
	defer func() { go discard(answers, &left) }()
	for left > 0 {
		select {
		case a := <-answers:
			left--
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case a.link.status.Leader != 0:
				if second != nil {
					second.cancel()
				}
				return a.link, nil
			case second == nil:
				second, grace = a.link, time.After(leaderGrace)
			default:
				a.link.cancel()
			}
		case <-grace:
			return second, nil
		case <-patience.C:
			if second != nil {
				return second, nil
			}
			return nil, errors.Join(append(errs, context.DeadlineExceeded)...)
		case <-w.closing:
			if second != nil {
				second.cancel()
			}
			return nil, ErrClosed
		}
	}
	if second != nil {
		return second, nil
	}
	return nil, errors.Join(errs...)
}

// discard closes the streams that open after one was taken.
func discard(answers <-chan attempt, left *int) {
	for range *left {
		if a := <-answers; a.link != nil {
			a.link.cancel()
		}
	}
}

// open opens a stream and waits for the member's first message.
func (w *writer) open(ctx context.Context, endpoint string) (*link, error) {
	service, err := w.dial(endpoint)
	if err != nil {
		return nil, err
	}
	client, key := w.table.identity()
	l := &link{w: w, endpoint: endpoint, client: client, received: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	slow := time.AfterFunc(connectPatience, l.cancel)
	l.stream, err = service.Propose(l.ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		err = l.stream.Send(&quoratepb.ProposeRequest{Key: key})
	}
	var first *quoratepb.ProposeResponse
	if err == nil || errors.Is(err, io.EOF) { // Recv returns the cause of an EOF
		first, err = l.stream.Recv()
	}
	if err == nil && first.Status == nil {
		err = errors.New("quorate: the member does not say who it is")
	}
	if err == nil {
		err = w.members.note(endpoint, first.Status)
	}
	if err == nil && !slow.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		slow.Stop()
		l.cancel()
		return nil, err
	}
	l.status = first.Status
	w.table.with(func(t *nativeclient.Table) { t.NoteView(first.Status) })
	return l, nil
}

// serve sends and receives until the stream ends.
func (l *link) serve() {
	defer func() {
		l.cancel()
		<-l.received
	}()
	l.noteStatus(l.status)
	deaf := time.AfterFunc(nativeclient.DeafAfter, l.cancel)
	defer deaf.Stop()
	go l.receive(deaf)
	ping := time.NewTicker(nativeclient.PingInterval)
	defer ping.Stop()
	if !l.ask() {
		return
	}
	var retry <-chan time.Time // of the writes that pause: those that are added meanwhile do not put it off
	for {
		trip := l.measured()
		l.w.voters.update(trip.Distance())
		if !l.pass() {
			return
		}
		if retry == nil && l.w.table.pausing() {
			retry = time.After(nativeclient.RetryPause)
		}
		select {
		case <-l.w.table.wake:
			// Callers that were answered together ask again together: each that can run adds its write first, and the message
			// takes all of them. No caller waits: with nothing else to run this does nothing.
			runtime.Gosched()
		case <-retry:
			retry = nil
			l.w.table.with((*nativeclient.Table).Retry)
		case <-ping.C:
			if !l.ask() || l.lostLeader() || l.w.members.deserted(l.endpoint) {
				return
			}
		case <-l.received:
			return
		case <-l.w.closing:
			l.leave()
			return
		}
	}
}

// pass sends all queued writes: as offers to all voters where possible, and the others to the member of this link.
// False means that the stream has ended.
func (l *link) pass() bool {
	for {
		for l.w.voters.offer() {
		}
		r := l.w.table.next()
		if r == nil {
			return true
		}
		if l.stream.Send(r) != nil {
			return false
		}
	}
}

// ask sends a ping, which keeps the client's sessions open and asks for the member's status.
func (l *link) ask() bool {
	l.mu.Lock()
	ping := l.roundTrip.Ping(time.Now())
	l.mu.Unlock()
	return l.stream.Send(&quoratepb.ProposeRequest{Ping: ping}) == nil
}

// measure updates the round trip, if a status answers the last ping.
func (l *link) measure(s *quoratepb.MemberStatus) {
	l.mu.Lock()
	first := l.roundTrip.Answered(time.Now(), s.Ping, s.Clock)
	l.mu.Unlock()
	if first {
		l.w.table.signal()
	}
}

// measured is what is known of the way to the member.
func (l *link) measured() nativeclient.RoundTrip {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.roundTrip
}

// receive handles the member's messages until the stream ends.
func (l *link) receive(deaf *time.Timer) {
	defer close(l.received)
	for {
		r, err := l.stream.Recv()
		if err != nil {
			return
		}
		deaf.Reset(nativeclient.DeafAfter)
		if r.Status != nil {
			l.measure(r.Status)
			l.noteStatus(r.Status)
		}
		l.w.table.with(func(t *nativeclient.Table) {
			for _, v := range r.Verdicts {
				t.Verdicts(l.status.Member, v)
			}
			for _, a := range r.Answers {
				t.Answer(a)
			}
		})
		if r.Opened != nil && !l.w.table.opened(r.Opened) {
			l.cancel()
		}
	}
}

func (l *link) noteStatus(s *quoratepb.MemberStatus) {
	if l.w.members.note(l.endpoint, s) != nil {
		l.cancel()
		return
	}
	l.w.table.with(func(t *nativeclient.Table) { t.NoteStatus(s) })
	switch {
	case s.Leader != 0:
		l.leaderless.Unset()
	default:
		l.leaderless.SetIfUnset(time.Now())
	}
}

// lostLeader reports whether the member has known no leader for so long that another member should be tried.
func (l *link) lostLeader() bool {
	since, leaderless := l.leaderless.Get()
	return leaderless && time.Since(since) > nativeclient.LeaderlessAfter
}

// leave retires the sessions and waits, for farewellTime at most, until the member has received that.
func (l *link) leave() {
	l.settle()
	if r := l.w.table.farewell(); r == nil || l.stream.Send(r) != nil || l.stream.CloseSend() != nil {
		return
	}
	select {
	case <-l.received:
	case <-time.After(l.w.parting):
	}
}

// settle waits, for farewellTime at most, until all writes that were answered by verdicts are known to be applied.
func (l *link) settle() {
	patience := time.After(l.w.parting)
	for l.w.table.settling() {
		select {
		case <-l.w.table.wake:
			if !l.pass() {
				return
			}
		case <-patience:
			return
		case <-l.received:
			return
		}
	}
}

// refused returns why all endpoints refuse this user; nil if some do not. A token that is over is no reason: the next stream
// has another.
func refused(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var why error
	for _, one := range joined.Unwrap() {
		why = rpctypes.Error(one)
		if why != rpctypes.ErrUserEmpty && why != rpctypes.ErrAuthFailed && why != rpctypes.ErrPermissionDenied {
			return nil
		}
	}
	return why
}

// unsupported reports whether no endpoint serves the Writer service.
func unsupported(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, one := range joined.Unwrap() {
		if status.Code(one) != codes.Unimplemented {
			return false
		}
	}
	return true
}
