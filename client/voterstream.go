package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/offers"
)

// streamBacklog bounds the messages that wait for one voter. A voter with more is cut off or too slow, and is not
// offered to.
const streamBacklog = 64

// voterStream is the stream to one voter, for offers to all voters.
type voterStream struct {
	all    *voterStreams // that it belongs to
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
		backoff = min(max(2*backoff, firstBackoff), maxBackoff)
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
	deaf := time.AfterFunc(deafAfter, stream.cancel)
	go stream.receive(deaf)
	s.send(stream)
	deaf.Stop()
	stream.cancel()
	<-stream.received
	s.mu.Lock()
	s.up = false
	s.mu.Unlock()
	s.all.w.table.streamLost(s)
}

func (s *voterStream) send(stream *link) {
	ping := time.NewTicker(pingInterval)
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

// open reports whether the stream is up under this client id and has room for a message.
func (s *voterStream) open(client uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up && s.client == client && len(s.out) < streamBacklog
}

// distance is the round trip to the voter; zero if it is not measured yet.
func (s *voterStream) distance() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return 0
	}
	return time.Duration(s.link.distance.Load())
}

// put queues a message for the voter; false means that the stream has ended since open returned true.
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
	policy  offers.Policy
	stamps  offers.Stamps
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

// fewestVoters is the smallest number of voters for which offers save a round trip.
const fewestVoters = 3

// update opens streams to all voters if offers are worth it, given the round trip to the nearest member, and closes the
// others.
func (v *voterStreams) update(nearest time.Duration) {
	g := v.w.members.latest()
	var wanted []uint64
	if g.fast && len(g.voters) >= fewestVoters && nearest >= v.w.far {
		wanted = g.voters
	}
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
		l := &voterStream{all: v, voter: id, wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(v.ctx)
		l.cancel = cancel
		v.streams[id] = l
		v.wg.Go(func() { l.run(ctx) })
	}
}

// offer offers the writes that were never sent to all voters at once, if the leader and a superquorum of the voters have a
// stream. It reports whether it offered anything.
func (v *voterStreams) offer() bool {
	if len(v.streams) == 0 {
		return false
	}
	g := v.w.members.latest()
	client, leader := v.w.table.id(), v.streams[g.leader]
	if !g.fast || leader == nil || !leader.open(client) {
		return false
	}
	var others []uint64
	for _, id := range g.voters {
		if l := v.streams[id]; id != g.leader && l != nil && l.open(client) {
			others = append(others, id)
		}
	}
	if len(others)+1 < quorum.Super(len(g.voters)) || !slices.Contains(g.voters, g.leader) {
		return false
	}
	now, stats := time.Now(), v.w.table.counted()
	mode := v.policy.Look(now, offers.Outcomes{
		Tried: stats.Offered, Agreed: stats.Won, Disagreed: stats.Offered - stats.Won, // why an offer failed is unknown here
	})
	proposals, records := &quoratepb.ProposeRequest{}, &quoratepb.ProposeRequest{}
	if mode == offers.Paused {
		// While offers pause, proposals go to the leader alone, whose answer comes first.
		proposals.Proposals = v.w.table.offer(client, &g, leader, nil)
	} else {
		proposals.TermConfig, records.TermConfig = g.message(), g.message()
		if mode == offers.Stamped {
			proposals.Due = v.due(now, &g, others)
			records.Due = proposals.Due
		}
		proposals.Proposals = v.w.table.offer(client, &g, leader, others)
		records.Records = proposals.Proposals
	}
	if len(proposals.Proposals) == 0 {
		return false
	}
	for _, id := range others {
		if len(records.Records) > 0 {
			v.streams[id].put(client, records)
		}
	}
	if !leader.put(client, proposals) {
		v.w.table.streamLost(leader) // its stream has ended since open returned true
	}
	return true
}

// due returns the stamp of an offer that leaves now: the time at which the voters that are needed have received it.
func (v *voterStreams) due(now time.Time, g *view, others []uint64) uint64 {
	var distances []time.Duration
	for _, id := range others {
		distances = append(distances, v.streams[id].distance())
	}
	v.stamps.SetAhead(offers.Ahead(v.streams[g.leader].distance(), distances, quorum.Super(len(g.voters))-1))
	return v.stamps.Next(now)
}
