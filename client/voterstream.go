package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/nativeclient"
)

// streamBacklog bounds the messages that wait for one voter. A voter with more is cut off or too slow, and is not
// offered to.
const streamBacklog = 64

// voterStream is the stream to one voter, for offers to all voters.
type voterStream struct {
	all    *voterStreams // that it belongs to
	id     uint64        // in the table
	voter  uint64
	cancel context.CancelFunc

	mu     sync.Mutex
	up     bool
	client uint64 // the client's id on the stream that is up
	link   *link  // the latest
	out    []*quoratepb.ProposeRequest
	wake   chan struct{}
}

// run keeps the stream open until ctx ends.
func (s *voterStream) run(ctx context.Context) {
	backoff := time.Duration(0)
	for ctx.Err() == nil {
		for _, endpoint := range s.all.w.members.toMember(s.voter) {
			stream, err := s.all.w.open(ctx, endpoint)
			if err != nil {
				continue
			}
			if stream.status.Member != s.voter {
				stream.cancel()
				continue
			}
			backoff = 0
			s.serve(stream)
			break
		}
		backoff = min(max(2*backoff, nativeclient.FirstBackoff), nativeclient.MaxBackoff)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
	}
}

// serve sends and receives until the stream ends. Writes that it has not answered are then sent again over the link.
func (s *voterStream) serve(stream *link) {
	s.mu.Lock()
	s.up, s.out, s.client, s.link = true, nil, stream.client, stream
	s.mu.Unlock()
	s.all.w.table.signal()
	deaf := time.AfterFunc(nativeclient.DeafAfter, stream.cancel)
	go stream.receive(deaf)
	s.send(stream)
	deaf.Stop()
	stream.cancel()
	<-stream.received
	s.mu.Lock()
	s.up = false
	s.mu.Unlock()
	s.lost()
}

// lost sends the unanswered writes of the stream again over the link.
func (s *voterStream) lost() { s.all.w.table.with(func(t *nativeclient.Table) { t.StreamLost(s.id) }) }

func (s *voterStream) send(stream *link) {
	ping := time.NewTicker(nativeclient.PingInterval)
	defer ping.Stop()
	if !stream.ask() {
		return
	}
	for {
		s.mu.Lock()
		waiting := s.out
		s.out = nil
		s.mu.Unlock()
		for _, r := range waiting {
			if stream.stream.Send(r) != nil {
				return
			}
		}
		select {
		case <-s.wake:
		case <-ping.C:
			if !stream.ask() {
				return
			}
		case <-stream.received:
			return
		case <-stream.ctx.Done():
			return
		}
	}
}

// present is what can be said of the stream to a client that has an id.
func (s *voterStream) present(client uint64) nativeclient.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := nativeclient.Stream{ID: s.id, Open: s.up && s.client == client && len(s.out) < streamBacklog}
	if s.link != nil {
		p.RoundTrip = s.link.measured()
	}
	return p
}

// put queues a message for the voter; false means that the stream has ended meanwhile.
func (s *voterStream) put(client uint64, r *quoratepb.ProposeRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.up || s.client != client {
		return false
	}
	s.out = append(s.out, r)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// voterStreams has the streams to all voters, while offers are worth their cost.
type voterStreams struct {
	w       *writer
	streams map[uint64]*voterStream // used by the link's goroutine only
	opened  uint64                  // so many so far
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup
}

func newVoterStreams(w *writer) *voterStreams {
	f := &voterStreams{w: w, streams: map[uint64]*voterStream{}}
	f.ctx, f.stop = context.WithCancel(w.ctx)
	return f
}

// close ends all streams and waits for their goroutines.
func (v *voterStreams) close() {
	v.stop()
	v.wg.Wait()
}

// update opens streams to all voters if offers are worth it, given the round trip to the nearest member, and closes the
// others.
func (v *voterStreams) update(nearest time.Duration) {
	wanted := v.w.table.voters(nearest, v.w.far)
	for id, l := range v.streams {
		if !slices.Contains(wanted, id) {
			l.cancel()
			delete(v.streams, id)
		}
	}
	for _, id := range wanted {
		if v.streams[id] != nil {
			continue
		}
		v.opened++
		l := &voterStream{all: v, id: v.opened, voter: id, wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(v.ctx)
		l.cancel = cancel
		v.streams[id] = l
		v.wg.Go(func() { l.run(ctx) })
	}
}

// offer sends what is to be offered to all voters at once. It reports whether there was anything.
func (v *voterStreams) offer() bool {
	if len(v.streams) == 0 {
		return false
	}
	client, streams := v.w.table.id(), make(map[uint64]nativeclient.Stream, len(v.streams))
	for id, s := range v.streams {
		streams[id] = s.present(client)
	}
	o := v.w.table.offer(client, streams)
	if o == nil {
		return false
	}
	for _, id := range o.Others {
		v.streams[id].put(client, o.Records)
	}
	if leader := v.streams[o.Leader]; !leader.put(client, o.Proposals) {
		leader.lost() // its stream has ended meanwhile
	}
	return true
}
