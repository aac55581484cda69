package transport

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
)

// Transport connects one member with the others.
type Transport struct {
	options Options
	logger  *slog.Logger
	server  *grpc.Server
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // every goroutine of ours

	peers   atomic.Pointer[[]*peer] // sorted by id, replaced as a whole
	sending chan struct{}           // one token per snapshot sent
	taking  chan struct{}           // one token per snapshot received
	// takingUnknown has one token: for a snapshot of a sender that is not known as a member.
	takingUnknown chan struct{}
	dropped       atomic.Uint64 // messages to members that we are not connected with
	term          atomic.Uint64 // the highest that we have spoken in
	version       uint16        // protocolVersion, but for tests
	progress      progress
	packs         packBudget
	guard         guard
	strays        strays
	refusals      refusalLog
	first         *admission.FirstMessages // what has not said hello yet

	mu       sync.Mutex
	closed   bool
	incoming map[streamKey]*incoming
}

var _ env.Transport = (*Transport)(nil)

// New opens the listeners and begins to serve. Nothing is dialled before Configure.
func New(o Options) (*Transport, error) {
	o.setDefaults()
	listeners := slices.Clone(o.Listeners)
	for _, raw := range o.ListenURLs {
		l, err := Listen(raw, o.TLS.Server)
		if err != nil {
			for _, opened := range listeners[len(o.Listeners):] {
				_ = opened.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	t := &Transport{
		options: o,
		logger:  o.Logger,
		sending: make(chan struct{}, o.Snapshot.Most),
		taking:  make(chan struct{}, o.Snapshot.Most),

		takingUnknown: make(chan struct{}, 1),
		version:       protocolVersion,
		incoming:      make(map[streamKey]*incoming),
	}
	t.packs.open(o.Packing.Bytes)
	t.guard.init(&o)
	t.refusals.init()
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.first = admission.NewFirstMessages(o.Hello)
	t.running.Go(func() { t.first.Run(t.ctx.Done()) })
	t.peers.Store(new([]*peer))
	t.server = newServer(t)
	for _, l := range listeners {
		l = countingListener{l}
		if o.Delay != nil {
			l = delayedListener{l, t}
		}
		t.running.Go(func() {
			// Serve ends with an error only when the listener fails under it.
			if err := t.server.Serve(l); err != nil && t.ctx.Err() == nil {
				t.logger.Error("peer listener failed", "address", l.Addr().String(), "err", err)
			}
		})
	}
	return t, nil
}

// Close stops everything at once. A message that was not sent yet is lost, and no handler runs after it returned.
func (t *Transport) Close() error {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.mu.Unlock()
	if again {
		return nil
	}
	t.cancel()
	t.server.Stop()
	t.running.Wait()
	return nil
}

// AwaitGreeting waits until every peer was dialled at least once, or ctx ends. A peer that can be reached has seen this
// process's claim then, and has accepted or refused it.
func (t *Transport) AwaitGreeting(ctx context.Context) {
	for _, p := range *t.peers.Load() {
		select {
		case <-p.express.tried:
		case <-ctx.Done():
			return
		case <-t.ctx.Done():
			return
		}
	}
}

// Send hands messages over to the queues of their peers. It never blocks; see invariant 2.
func (t *Transport) Send(messages []consensus.Message) {
	t.enter(messages)
	left := len(messages)
	for _, p := range *t.peers.Load() {
		left -= p.send(messages)
		if left == 0 {
			return
		}
	}
	if left > 0 {
		t.sendToNonMembers(messages)
	}
}

// enter drops what waits of earlier terms, if messages show that we are in a new one. Pre-votes do not: they ask about a term
// that may never come.
func (t *Transport) enter(messages []consensus.Message) {
	before := t.term.Load()
	term := before
	for i := range messages {
		if m := &messages[i]; m.Kind != consensus.MsgPreVote && m.Kind != consensus.MsgPreVoteReply {
			term = max(term, uint64(m.Term))
		}
	}
	if term == before || !t.term.CompareAndSwap(before, term) {
		return // or another goroutine entered one at the same time: the next message will tell
	}
	for _, p := range *t.peers.Load() {
		p.ordered.box.outdate(consensus.Term(term))
	}
}

// sendToNonMembers answers members that have a stream to us without being peers: one that was removed and has to be
// told, or one that joined by a configuration we have not applied yet. Everything else is dropped.
func (t *Transport) sendToNonMembers(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		if t.peer(m.To) != nil {
			continue
		}
		t.mu.Lock()
		in := t.incoming[streamKey{from: m.To, kind: streamOrdered}]
		if in == nil {
			in = t.incoming[streamKey{from: m.To, kind: streamOrdered, said: true}]
		}
		t.mu.Unlock()
		if in == nil {
			t.dropped.Add(1)
			continue
		}
		in.box.addOne(m)
	}
}

// Configure makes the members of a configuration, without ourselves, the peers that we dial. Their roles say what of an
// unbound member must not be counted. It does not wait for connections, and what waits for a peer that is dropped still has
// a moment to leave.
func (t *Transport) Configure(config *consensus.Config) {
	members := config.Members
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.guard.configure(config)
	was := *t.peers.Load()
	next := make([]*peer, 0, len(members))
	for i := range members {
		m := &members[i]
		if m.ID == t.options.Self.Member {
			continue
		}
		p := find(was, m.ID)
		if p == nil {
			p = newPeer(t, m)
			p.keepDistance(m)
			p.start()
		} else {
			p.keepDistance(m)
			p.readdress(m.PeerURLs)
		}
		next = append(next, p)
	}
	slices.SortFunc(next, func(a, b *peer) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	t.peers.Store(&next)
	for _, p := range was {
		if find(next, p.id) == nil {
			p.stop()
		}
	}
	t.running.Go(t.reconsider)
}

// ConnectedSince tells since when the stream to a peer has been up.
func (t *Transport) ConnectedSince(id consensus.MemberID) (time.Time, bool) {
	p := t.peer(id)
	if p == nil {
		return time.Time{}, false
	}
	return p.ordered.upSince()
}

// RTT tells the smoothed round-trip time to a peer, measured by pings on the express stream.
func (t *Transport) RTT(id consensus.MemberID) (time.Duration, bool) {
	p := t.peer(id)
	if p == nil {
		return 0, false
	}
	rtt := time.Duration(p.rtt.Load())
	return rtt, rtt > 0
}

// Distance tells the lowest round-trip time to a peer that was measured within the last minute: what the network costs,
// while the smoothed time also tells how busy both members are.
func (t *Transport) Distance(id consensus.MemberID) (time.Duration, bool) {
	p := t.peer(id)
	if p == nil {
		return 0, false
	}
	return p.lowest.Get(time.Now())
}

func (t *Transport) peer(id consensus.MemberID) *peer { return find(*t.peers.Load(), id) }

func find(peers []*peer, id consensus.MemberID) *peer {
	for _, p := range peers {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (t *Transport) isClosed() bool { return t.ctx.Err() != nil }

func (t *Transport) cut(id consensus.MemberID) bool {
	return t.options.Faults != nil && t.options.Faults(id)
}

func (t *Transport) hello(to consensus.MemberID, kind streamKind) hello {
	return hello{version: t.version, kind: kind, to: to, claim: t.guard.claims.Own()}
}

// hello is what begins a stream to a peer.
func (p *peer) hello(kind streamKind) hello {
	h := p.t.hello(p.id, kind)
	h.token = p.token
	return h
}
