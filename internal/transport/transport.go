package transport

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/quorate/quorate/internal/admission"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/env"
	"github.com/quorate/quorate/internal/identity"
)

// Handler is what the member does with what arrives. Its methods are called from many goroutines at once.
type Handler interface {
	// Receive takes over the messages of one frame. While it blocks, its peer's stream waits; it must not block for
	// ever, nor after the member has begun to stop.
	Receive(messages []consensus.Message)
	// ReceiveSnapshot reads r to its end, which comes only after everything arrived undamaged, and returns once the
	// snapshot is safe. An error reaches the sender with its grpc code.
	ReceiveSnapshot(from consensus.MemberID, meta consensus.SnapshotMeta, r io.Reader) error
	// Call answers another member's, or a joining member's, request. Errors keep their grpc code.
	Call(ctx context.Context, method string, body []byte) ([]byte, error)
	// PeerLost tells that an established connection to or from a peer broke.
	PeerLost(peer consensus.MemberID)
}

// Options say who a Transport is and where it listens. Zero fields other than the identity have defaults.
type Options struct {
	Self    consensus.MemberID
	Cluster consensus.ClusterID
	Epoch   consensus.Epoch
	Storage consensus.StorageID
	Life    consensus.Life
	Address string // the peer URL that this member advertises, for the logs of others
	Handler Handler
	Logger  *slog.Logger

	// Seen is what Remember was given last, by any life of this member. Remember returns once it is on disk.
	Seen     []identity.Seen
	Remember func([]identity.Seen) error
	// Refused, if set, is told when a peer refuses this member for a reason of its data directory.
	Refused func(by consensus.MemberID, refusal *identity.Refusal)
	// OpenMethods are the calls that anybody may make.
	OpenMethods []string
	Rules       identity.Rules // for tests

	// Listeners are served and, on Close, closed. ListenURLs are opened in addition.
	Listeners  []net.Listener
	ListenURLs []string
	// ClientTLS and ServerTLS are needed for https URLs only.
	ClientTLS, ServerTLS *tls.Config
	// DialTLS, if set, is asked for each connection instead of ClientTLS, so that replaced certificates count.
	DialTLS func() *tls.Config

	QueueMessages int // that wait for one peer; default 8192
	QueueBytes    int // that wait for one peer; default 64 MiB

	DialTimeout time.Duration // for one URL; default 2s
	BackoffMin  time.Duration // before the first retry; default 20ms
	BackoffMax  time.Duration // default 500ms
	// DeadAfter is how long a peer may leave pings unanswered before its connections are torn down; default 3s.
	// It should be a few election timeouts: this finds half-open connections, not dead leaders.
	DeadAfter time.Duration
	// IdleAfter is how long a connection to us may be without a stream or call; default one minute. A member always has a
	// stream on its connections.
	IdleAfter time.Duration

	Hello admission.FirstMessageLimits // how long the hello of others may take to arrive

	MaxSnapshots           int   // concurrent, in each direction; default 2
	SnapshotBytesPerSecond int64 // of each snapshot sent; zero for no limit

	// Delay, if set, says how long everything that is sent to a member takes on purpose: messages of both lanes, calls of
	// and answers to members, snapshots. The member has no name if the configuration has none, and is only an id if it is
	// no peer; calls by URL leave at once. For trying out distances. Without it nothing is any slower.
	Delay func(to consensus.Member) time.Duration

	// Faults, if set, is asked before anything is sent to or taken from a peer; true drops it. For tests.
	Faults func(peer consensus.MemberID) bool
}

func (o *Options) setDefaults() {
	setDefault(&o.QueueMessages, 8192)
	setDefault(&o.QueueBytes, 64<<20)
	setDefault(&o.DialTimeout, 2*time.Second)
	setDefault(&o.BackoffMin, 20*time.Millisecond)
	setDefault(&o.BackoffMax, 500*time.Millisecond)
	setDefault(&o.DeadAfter, 3*time.Second)
	setDefault(&o.IdleAfter, time.Minute)
	setDefault(&o.MaxSnapshots, 2)
	if o.Hello == (admission.FirstMessageLimits{}) {
		o.Hello = admission.FirstMessageLimits{Timeout: helloTimeout, Many: maxUnmet, ManyTimeout: manyHelloTimeout}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) clientTLS() *tls.Config {
	if o.DialTLS != nil {
		return o.DialTLS()
	}
	return o.ClientTLS
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Transport connects one member with the others.
type Transport struct {
	options Options
	logger  *slog.Logger
	server  *grpc.Server
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // every goroutine of ours

	peers    atomic.Pointer[[]*peer] // sorted by id, replaced as a whole
	sending  chan struct{}           // one token per snapshot sent
	taking   chan struct{}           // one token per snapshot received
	dropped  atomic.Uint64           // messages to members that we are not connected with
	version  uint16                  // protocolVersion, but for tests
	progress progress
	door     door
	first    *admission.FirstMessages // what has not said hello yet

	mu       sync.Mutex
	closed   bool
	incoming map[streamKey]*incoming
	refused  map[consensus.MemberID]string // what was logged about whom we refused
}

var _ env.Transport = (*Transport)(nil)

// New opens the listeners and begins to serve. Nothing is dialled before Configure.
func New(o Options) (*Transport, error) {
	o.setDefaults()
	listeners := slices.Clone(o.Listeners)
	for _, raw := range o.ListenURLs {
		l, err := Listen(raw, o.ServerTLS)
		if err != nil {
			for _, opened := range listeners[len(o.Listeners):] {
				_ = opened.Close()
			}
			return nil, err
		}
		listeners = append(listeners, l)
	}
	t := &Transport{
		options:  o,
		logger:   o.Logger,
		sending:  make(chan struct{}, o.MaxSnapshots),
		taking:   make(chan struct{}, o.MaxSnapshots),
		version:  protocolVersion,
		incoming: make(map[streamKey]*incoming),
		refused:  make(map[consensus.MemberID]string),
	}
	t.door.init(&o)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.first = admission.NewFirstMessages(o.Hello)
	t.running.Go(func() { t.first.Run(t.ctx.Done()) })
	t.peers.Store(new([]*peer))
	t.server = newServer(t)
	for _, l := range listeners {
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

// Close stops everything at once. What was not sent yet is lost, and no handler runs after it returned.
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

// Send hands messages over to the queues of their peers. It never blocks; see law 2.
func (t *Transport) Send(messages []consensus.Message) {
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

// sendToNonMembers answers members that have a stream to us without being peers: one that was removed and has to be
// told, or one that joined by a configuration we have not applied yet. Everything else is dropped.
func (t *Transport) sendToNonMembers(messages []consensus.Message) {
	for i := range messages {
		m := &messages[i]
		if t.peer(m.To) != nil {
			continue
		}
		t.mu.Lock()
		in := t.incoming[streamKey{from: m.To, lane: laneOrdered}]
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
	t.door.configure(config)
	was := *t.peers.Load()
	next := make([]*peer, 0, len(members))
	for i := range members {
		m := &members[i]
		if m.ID == t.options.Self {
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

// RTT tells the smoothed round-trip time to a peer, measured by pings on the express lane.
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
	return p.lowest.get(time.Now())
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

func (t *Transport) hello(to consensus.MemberID, lane laneKind) hello {
	return hello{version: t.version, lane: lane, to: to, claim: t.door.guard.Own()}
}
