package transport

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

const (
	// crowdedBytes is how many bytes may be on their way to a peer before express kinds take the express stream. Below
	// it, a frame that they share with other messages is cheaper.
	crowdedBytes = 512 << 10
	// expressVoteBytes is the largest vote that takes the express stream.
	expressVoteBytes = 64 << 10
	// probeBytes is the number of bytes after which the ordered stream asks the peer how much it has received.
	probeBytes = 128 << 10
	// drainTimeout is how long a dropped peer may take to accept what still waits for it.
	drainTimeout = time.Second
)

// peer is another member and our two streams to it.
type peer struct {
	t                *Transport
	id               consensus.MemberID
	ordered, express *peerStream
	generation       atomic.Uint64 // how often the peer was lost; every stream remembers in which one it began
	stopped          atomic.Bool
	token            token // of our streams to it
	confirmations    confirmations
	rtt              atomic.Int64 // nanoseconds
	trips            tripCounter
	lowest           Lowest
	delay            atomic.Int64 // nanoseconds that messages take on purpose
	first            atomic.Uint32
	in               counters
	failures, losses atomic.Uint64
	unresolved       atomic.Bool   // the last attempt ended because no name of its URLs resolves
	snapshots        atomic.Uint64 // whose sending began

	mu       sync.Mutex
	urls     []string
	inUse    string // the URL that the ordered stream is connected to
	reported string // the last trouble that was logged, until a connection is up again
	faulty   string // the same in a word: see PeerStats.Fault
}

func newPeer(t *Transport, m *consensus.Member) *peer {
	p := &peer{t: t, id: m.ID, urls: slices.Clone(m.PeerURLs), token: newToken()}
	p.ordered = newPeerStream(p, streamOrdered)
	p.express = newPeerStream(p, streamExpress)
	return p
}

func (p *peer) start() {
	p.t.running.Go(p.ordered.run)
	p.t.running.Go(p.express.run)
}

// voices are the lives that have answered at the address of the peer, on the streams that are up.
func (p *peer) voices() (up []voice) {
	for _, l := range []*peerStream{p.ordered, p.express} {
		if claim := l.claim.Load(); claim != nil {
			heard, _ := l.heard.Get()
			up = append(up, voice{*claim, heard})
		}
	}
	return up
}

// stop closes both streams, after they have sent what waits, for drainTimeout at most.
func (p *peer) stop() {
	p.stopped.Store(true)
	p.ordered.close()
	p.express.close()
}

// readdress changes the URLs. A connection to an address that is no longer the peer's is given up in good order.
func (p *peer) readdress(urls []string) {
	p.mu.Lock()
	changed := !slices.Equal(p.urls, urls)
	p.urls = slices.Clone(urls)
	keep := slices.Contains(urls, p.inUse)
	p.mu.Unlock()
	if !changed {
		return
	}
	for _, l := range []*peerStream{p.ordered, p.express} {
		if !keep {
			l.hangUp()
		}
		l.retryNow()
	}
}

// send queues what is meant for p and returns how many messages that were.
func (p *peer) send(messages []consensus.Message) int {
	if !p.ordered.crowded() {
		return p.ordered.box.add(messages, p.id)
	}
	if _, up := p.express.upSince(); !up {
		return p.ordered.box.add(messages, p.id)
	}
	matched := 0
	for i := range messages {
		m := &messages[i]
		if m.To != p.id {
			continue
		}
		matched++
		if IsExpress(m) {
			p.express.box.addOne(m)
		} else {
			p.ordered.box.addOne(m)
		}
	}
	return matched
}

// IsExpress reports whether a message may take the express stream: of a kind that is small, that elections and leases
// depend on, and that Raft accepts in any order. A vote may have megabytes of records: on a slow link it would delay
// the pings, so that the peer would seem dead in every election.
func IsExpress(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgHeartbeat, consensus.MsgHeartbeatReply, consensus.MsgPreVote, consensus.MsgPreVoteReply,
		consensus.MsgVote, consensus.MsgTimeoutNow, consensus.MsgRead, consensus.MsgReadReply, consensus.MsgLogQuery,
		consensus.MsgLogQueryReply, consensus.MsgRemoved:
		return true
	case consensus.MsgVoteReply:
		return m.SizeBytes() <= expressVoteBytes
	}
	return false
}

// packing prepares to pack what a stream sends to the peer, whose hello is theirs.
func (p *peer) packing(theirs *hello) *packing {
	return newPacking(&p.t.options.Packing, &p.t.packs, &p.lowest, theirs.can)
}

// lost reports to the handler that a stream of the given generation broke. A peer that dies breaks four streams: the
// first of them ends the generation, and the others have nothing to add, even if the peer is back by then.
func (p *peer) lost(generation uint64, err error) {
	if p.stopped.Load() || p.t.isClosed() || !p.generation.CompareAndSwap(generation, generation+1) {
		return
	}
	p.losses.Add(1)
	p.t.logger.Warn("peer lost", "peer", p.id.String(), "err", err)
	p.t.options.Handler.PeerLost(p.id)
}

// Kinds of trouble with connecting, beside refusals, which are told apart by their texts.
const (
	unreachable = "unreachable"
	untrusted   = "untrusted"
	unresolved  = "unresolved"
)

// troubleOf returns of what kind an error of connecting is: of each the first one is logged.
func troubleOf(err error) string {
	text := err.Error()
	switch {
	case isRefusal(err), errors.Is(err, ErrNoAddress):
		return text
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "): // gRPC leaves nothing but the text
		return untrusted
	}
	return unreachable
}

// faultOf is a trouble in a word.
func faultOf(kind string, err error) string {
	if kind == unreachable || kind == untrusted || kind == unresolved {
		return kind
	}
	if told := identity.Read(status.Convert(err).Message()); told != nil {
		return told.Reason.String()
	}
	return "refused"
}

// faultWord is why connecting to the peer failed last, while it is not connected.
func (p *peer) faultWord() string {
	if _, up := p.ordered.upSince(); up {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faulty
}

// report logs trouble with connecting, of each kind once until the peer is up again or the kind changes.
func (p *peer) report(err error) {
	p.failures.Add(1)
	kind := troubleOf(err)
	if kind == unreachable && p.unresolved.Load() {
		kind = unresolved
	}
	p.mu.Lock()
	fresh := p.reported != kind
	if kind == untrusted && strings.Contains(err.Error(), "x509: ") { // this member refuses the certificate, not the peer ours
		p.t.guard.refusals[identity.WrongCertificate].Add(1)
	}
	p.reported, p.faulty = kind, faultOf(kind, err)
	p.mu.Unlock()
	if told := p.refusedFor(err); told != nil && !p.t.options.Identity.Refused(p.id, told) {
		if text := p.t.guard.contradicted(p.id); text != "" {
			p.t.logger.Error("peer is of another history of this cluster", "peer", p.id.String(), "what", text)
		}
		return
	}
	switch {
	case !fresh || (kind == unreachable || kind == untrusted || kind == unresolved) && p.t.isClosed():
	case kind == unresolved:
		p.t.logger.Warn("the name of a peer does not resolve", "peer", p.id.String(), "err", err)
	case kind == unreachable, kind == untrusted:
		p.t.logger.Warn("peer unreachable", "peer", p.id.String(), "err", err)
	default:
		p.t.logger.Error("peer refused", "peer", p.id.String(), "err", err)
	}
}

// refusedFor returns the refusal of this member's data directory that the peer answered; nil if it is none, or no caller wants
// to know.
func (p *peer) refusedFor(err error) *identity.Refusal {
	told := identity.Read(status.Convert(err).Message())
	if told == nil || !told.Reason.Final() || status.Code(err) != codes.FailedPrecondition ||
		p.t.options.Identity.Refused == nil {
		return nil
	}
	return told
}

// connected notes that a stream is up.
func (p *peer) connected(kind streamKind, url string) {
	if kind != streamOrdered {
		return
	}
	p.mu.Lock()
	p.reported, p.faulty, p.inUse = "", "", url
	p.mu.Unlock()
	p.t.logger.Info("peer connected", "peer", p.id.String(), "url", url)
}

// addresses returns the URLs in the order to try: the one that worked last comes first.
func (p *peer) addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.urls) == 0 {
		return nil
	}
	at := int(p.first.Load()) % len(p.urls)
	return append(slices.Clone(p.urls[at:]), p.urls[:at]...)
}

// nextAddress makes another URL the first one: the first one answers, but is not our peer.
func (p *peer) nextAddress() { p.first.Add(1) }

// dialed is a connection and the URL that it uses.
type dialed struct {
	*grpc.ClientConn
	url atomic.Pointer[string]
}

// dial prepares a connection; it is made when the first stream is opened on it.
func (p *peer) dial() (*dialed, error) {
	urls := p.addresses()
	if len(urls) == 0 {
		return nil, ErrNoAddress
	}
	d := &dialed{}
	var err error
	d.ClientConn, err = newConn(&p.t.options, func(ctx context.Context) (net.Conn, error) {
		if p.t.cut(p.id) {
			return nil, ErrCut
		}
		var all []error
		for _, url := range urls {
			conn, err := dialURL(ctx, url, p.t.options.TLS.forDialling(), p.t.options.Times.Dial)
			if err == nil {
				d.url.Store(&url)
				return p.far(conn), nil
			}
			all = append(all, err)
		}
		p.unresolved.Store(!slices.ContainsFunc(all, func(err error) bool { return !isLookup(err) }))
		return nil, errors.Join(all...)
	}, time.Duration(len(urls))*p.t.options.Times.Dial, streamWindowBytes)
	return d, err
}

// isLookup reports whether an error is of a name that does not resolve, or that no server answered for.
func isLookup(err error) bool {
	var lookup *net.DNSError
	return errors.As(err, &lookup)
}

// newConn prepares a connection. Its calls and streams say how large a message is that comes back: the process that answers may
// be no member.
func newConn(
	o *Options, dial func(context.Context) (net.Conn, error), patience time.Duration, window int32,
) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///peer",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		// TLS, where a URL asks for it, is the dialler's: one peer may have URLs of both sorts.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}),
			grpc.MaxCallRecvMsgSize(maxHelloBytes), grpc.MaxCallSendMsgSize(maxFrameBytes)),
		grpc.WithMaxHeaderListSize(answerHeaderBytes),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
		grpc.WithSharedWriteBuffer(true),
		// Windows that do not adapt spare a ping for every burst; these carry 80 MB/s over 50 ms.
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(2*window),
		// The kernel gives up on unacknowledged data after Timeout; silence is found by our own, quicker pings.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 10 * time.Second, Timeout: o.Times.DeadAfter, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: o.Times.BackoffMin, Multiplier: 2, Jitter: 0.2,
				MaxDelay: o.Times.BackoffMax},
			MinConnectTimeout: patience}),
	)
}
