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

// laneBacklog is how many messages may wait for a voter before none is added: it is cut off, or too slow to be of use.
const laneBacklog = 64

// lane is the stream to one voter, for what is offered to all of them.
type lane struct {
	f      *fleet
	voter  uint64
	cancel context.CancelFunc

	mu     sync.Mutex
	up     bool
	client uint64 // the client's id on the stream that is up
	stream *link  // the latest
	out    []*quoratepb.ProposeRequest
	wake   chan struct{}
}

// run keeps the stream up until the lane is closed.
func (l *lane) run(ctx context.Context) {
	backoff := time.Duration(0)
	for ctx.Err() == nil {
		for _, endpoint := range l.f.w.members.toMember(l.voter) {
			stream, err := l.f.w.open(ctx, endpoint)
			if err != nil {
				continue
			}
			if stream.status.Member != l.voter {
				stream.cancel()
				continue
			}
			backoff = 0
			l.serve(stream)
			break
		}
		backoff = min(max(2*backoff, firstBackoff), maxBackoff)
		select {
		case <-time.After(backoff):
		case <-ctx.Done():
		}
	}
}

// serve sends and receives until the stream ends. Then what it has not answered is asked for by the link.
func (l *lane) serve(stream *link) {
	l.mu.Lock()
	l.up, l.out, l.client, l.stream = true, nil, stream.client, stream
	l.mu.Unlock()
	l.f.w.table.signal()
	deaf := time.AfterFunc(deafAfter, stream.cancel)
	go stream.receive(deaf)
	l.send(stream)
	deaf.Stop()
	stream.cancel()
	<-stream.received
	l.mu.Lock()
	l.up = false
	l.mu.Unlock()
	l.f.w.table.laneLost(l)
}

func (l *lane) send(stream *link) {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	if !stream.ask() {
		return
	}
	for {
		l.mu.Lock()
		waiting := l.out
		l.out = nil
		l.mu.Unlock()
		for _, r := range waiting {
			if stream.stream.Send(r) != nil {
				return
			}
		}
		select {
		case <-l.wake:
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

// open reports whether the lane takes messages of the client under an id.
func (l *lane) open(client uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up && l.client == client && len(l.out) < laneBacklog
}

// distance is the round trip to the voter; zero: not measured yet.
func (l *lane) distance() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream == nil {
		return 0
	}
	return time.Duration(l.stream.distance.Load())
}

// put leaves a message of the client for the voter; false means that the stream has ended since open was asked.
func (l *lane) put(client uint64, r *quoratepb.ProposeRequest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up || l.client != client {
		return false
	}
	l.out = append(l.out, r)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// fleet is the lanes to all voters, while they are worth their cost.
type fleet struct {
	w      *writer
	lanes  map[uint64]*lane // of the link's goroutine
	policy offers.Policy
	stamps offers.Stamps
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

func newFleet(w *writer) *fleet {
	f := &fleet{w: w, lanes: map[uint64]*lane{}}
	f.ctx, f.stop = context.WithCancel(w.ctx)
	return f
}

// close ends all lanes.
func (f *fleet) close() {
	f.stop()
	f.wg.Wait()
}

// fewestVoters is how many voters a client gains by asking at once.
const fewestVoters = 3

// steer opens the lanes that are worth it, when the nearest member is so far away, and closes the others.
func (f *fleet) steer(nearest time.Duration) {
	g := f.w.members.latest()
	var wanted []uint64
	if g.fast && len(g.voters) >= fewestVoters && nearest >= f.w.far {
		wanted = g.voters
	}
	for id, l := range f.lanes {
		if !slices.Contains(wanted, id) {
			l.cancel()
			delete(f.lanes, id)
		}
	}
	for _, id := range wanted {
		if f.lanes[id] != nil {
			continue
		}
		l := &lane{f: f, voter: id, wake: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(f.ctx)
		l.cancel = cancel
		f.lanes[id] = l
		f.wg.Go(func() { l.run(ctx) })
	}
}

// offer offers what waits for its first attempt to all voters at once, if a superquorum of them, the leader among them, can
// be reached. It reports whether it offered anything.
func (f *fleet) offer() bool {
	if len(f.lanes) == 0 {
		return false
	}
	g := f.w.members.latest()
	client, leader := f.w.table.id(), f.lanes[g.leader]
	if !g.fast || leader == nil || !leader.open(client) {
		return false
	}
	var others []uint64
	for _, id := range g.voters {
		if l := f.lanes[id]; id != g.leader && l != nil && l.open(client) {
			others = append(others, id)
		}
	}
	if len(others)+1 < quorum.Super(len(g.voters)) || !slices.Contains(g.voters, g.leader) {
		return false
	}
	now, stats := time.Now(), f.w.table.counted()
	mode := f.policy.Look(now, offers.Outcomes{
		Tried: stats.Offered, Agreed: stats.Won, Disagreed: stats.Offered - stats.Won, // an offer that failed was not agreed on
	})
	proposals, records := &quoratepb.ProposeRequest{}, &quoratepb.ProposeRequest{}
	if mode == offers.Paused {
		proposals.Proposals = f.w.table.offer(client, &g, leader, nil) // the leader's word comes sooner than any other's
	} else {
		proposals.TermConfig, records.TermConfig = g.message(), g.message()
		if mode == offers.Stamped {
			proposals.Due = f.due(now, &g, others)
			records.Due = proposals.Due
		}
		proposals.Proposals = f.w.table.offer(client, &g, leader, others)
		records.Records = proposals.Proposals
	}
	if len(proposals.Proposals) == 0 {
		return false
	}
	for _, id := range others {
		if len(records.Records) > 0 {
			f.lanes[id].put(client, records)
		}
	}
	if !leader.put(client, proposals) {
		f.w.table.laneLost(leader) // it ended since it was looked at
	}
	return true
}

// due returns when an offer that leaves now will have reached all who must hold it. Stamps grow.
func (f *fleet) due(now time.Time, g *view, others []uint64) uint64 {
	var distances []time.Duration
	for _, id := range others {
		distances = append(distances, f.lanes[id].distance())
	}
	f.stamps.SetAhead(offers.Ahead(f.lanes[g.leader].distance(), distances, quorum.Super(len(g.voters))-1))
	return f.stamps.Next(now)
}
