package client

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
)

const (
	// connectPatience bounds one attempt to find a member that answers.
	connectPatience = 3 * time.Second
	// leaderGrace is for how long a member that knows no leader waits for one that does.
	leaderGrace = 300 * time.Millisecond
)

var errNoEndpoint = errors.New("quorate: no endpoint")

// link is the stream to one member.
type link struct {
	w        *writer
	endpoint string
	client   uint64 // the client's id when it began
	stream   grpc.BidiStreamingClient[quoratepb.ProposeRequest, quoratepb.ProposeResponse]
	ctx      context.Context
	cancel   context.CancelFunc
	status   *quoratepb.MemberStatus

	leaderless atomic.Int64 // since when it knows no leader; zero if it does
	asked      atomic.Int64 // when it was asked how it stands last: that is the question's name
	distance   atomic.Int64 // the round trip, in nanoseconds; zero: not measured yet
	received   chan struct{}
}

// attempt is how one endpoint answered.
type attempt struct {
	link *link
	err  error
}

// connect asks all endpoints at once and takes the first that answers: the nearest of those that work. One that knows no
// leader is taken only if no other one comes forward.
func (w *writer) connect() (*link, error) {
	given, _ := w.members.endpoints()
	l, err := w.race(given)
	if err != nil && w.ctx.Err() == nil {
		w.members.refresh(w.ctx)
		_, advertised := w.members.endpoints()
		if other, otherErr := w.race(advertised); otherErr == nil {
			l, err = other, nil
		}
	}
	if err == nil {
		go w.members.refresh(w.ctx)
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

// discard ends the streams that come after the choice.
func discard(answers <-chan attempt, left *int) {
	for range *left {
		if a := <-answers; a.link != nil {
			a.link.cancel()
		}
	}
}

// open begins a stream and waits for the member's first word.
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
	if err == nil || errors.Is(err, io.EOF) { // then Recv says why
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
	return l, nil
}

// serve sends and receives until the stream ends.
func (l *link) serve() {
	defer func() {
		l.cancel()
		<-l.received
	}()
	l.noteStatus(l.status)
	deaf := time.AfterFunc(deafAfter, l.cancel)
	defer deaf.Stop()
	go l.receive(deaf)
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	if !l.ask() {
		return
	}
	for {
		l.w.fleet.steer(time.Duration(l.distance.Load()))
		if !l.pass() {
			return
		}
		var retry <-chan time.Time
		if l.w.table.pausing() {
			retry = time.After(retryPause)
		}
		select {
		case <-l.w.table.wake:
		case <-retry:
			l.w.table.retry()
		case <-ping.C:
			if !l.ask() || l.lostLeader() {
				return
			}
			go l.w.members.refresh(l.w.ctx)
		case <-l.received:
			return
		case <-l.w.closing:
			l.leave()
			return
		}
	}
}

// pass sends what waits: to all voters at once what may go so, and the rest to the member of this link. False means that the
// stream has ended: the receiver has heard why, and it makes no difference.
func (l *link) pass() bool {
	for {
		for l.w.fleet.offer() {
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

// ask says that the client is there, and asks how the member stands.
func (l *link) ask() bool {
	now := time.Now().UnixNano()
	l.asked.Store(now)
	return l.stream.Send(&quoratepb.ProposeRequest{Ping: uint64(now)}) == nil
}

// measure takes the member's answer to ask, not what it says by itself.
func (l *link) measure(question uint64) {
	at := l.asked.Load()
	if question == 0 || uint64(at) != question {
		return
	}
	took, before := time.Now().UnixNano()-at, l.distance.Load()
	if before != 0 && took > before {
		took = before + (took-before)/4
	}
	l.distance.Store(max(1, took))
	if before == 0 {
		l.w.table.signal()
	}
}

// receive takes what the member says.
func (l *link) receive(deaf *time.Timer) {
	defer close(l.received)
	for {
		r, err := l.stream.Recv()
		if err != nil {
			return
		}
		deaf.Reset(deafAfter)
		if r.Status != nil {
			l.measure(r.Status.Ping)
			l.noteStatus(r.Status)
		}
		for _, v := range r.Verdicts {
			l.w.table.verdicts(l.status.Member, v)
		}
		for _, a := range r.Answers {
			l.w.table.answer(a)
		}
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
	l.w.table.noteStatus(s)
	if s.Leader != 0 {
		l.w.table.newTerm(s.Term)
	}
	switch {
	case s.Leader != 0:
		l.leaderless.Store(0)
	case l.leaderless.Load() == 0:
		l.leaderless.Store(time.Now().UnixNano())
	}
}

// lostLeader reports whether the member has known no leader for so long that another one may.
func (l *link) lostLeader() bool {
	since := l.leaderless.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > leaderlessAfter
}

// leave gives the sessions back and waits, not for long, until the member has heard it.
func (l *link) leave() {
	l.settle()
	if r := l.w.table.farewell(); r == nil || l.stream.Send(r) != nil || l.stream.CloseSend() != nil {
		return
	}
	select {
	case <-l.received:
	case <-time.After(farewellTime):
	}
}

// settle waits, not for long, until the log has said of all writes what their callers were told.
func (l *link) settle() {
	patience := time.After(farewellTime)
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

// unsupported reports whether every endpoint that answered does not know the service.
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
