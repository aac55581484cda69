package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/limits/admission"
)

// Options say who a Transport is and where it listens. Zero fields other than Self have defaults.
type Options struct {
	Self    identity.Claim // what others are told; its Address is the peer URL that this member advertises, for their logs
	Handler Handler
	Logger  *slog.Logger
	// Listeners are served and, on Close, closed. ListenURLs are opened in addition.
	Listeners  []net.Listener
	ListenURLs []string
	// OpenMethods are the calls that any process may make.
	OpenMethods []string
	// MovedMethods are the calls that a member may make that is not confirmed at its address: it has moved, and says so.
	MovedMethods []string

	TLS      TLS
	Identity Identity
	Queue    Queue
	Times    Times
	Hello    admission.FirstMessageLimits // how long the hello of others may take to arrive
	Snapshot Snapshot
	Packing  Packing
	// UnknownBytes are what a ConnAdmitter leaves to all connections together that are not known as a member's; zero: no limit.
	// Windows of flow control are small enough to leave room for several of them.
	UnknownBytes int64

	// Delay, if set, says how long everything that is sent to a member takes on purpose: messages of both streams, calls of
	// and answers to members, snapshots. The member has no name if the configuration has none, and is only an id if it is
	// no peer; calls by URL leave at once. For trying out distances. Without it nothing is any slower.
	Delay func(to consensus.Member) time.Duration
	// Faults, if set, is asked before anything is sent to or taken from a peer; true drops it. For tests.
	Faults func(peer consensus.MemberID) bool
}

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

// TLS is needed for https URLs only.
type TLS struct {
	Client, Server *tls.Config
	// Dial, if set, is asked for each connection instead of Client, so that replaced certificates count.
	Dial func() *tls.Config
}

// CertificateCheck tells whether a certificate that was verified may speak for a member that is at one of some hosts.
type CertificateCheck func(cert *x509.Certificate, hosts []string) error

// Identity is how the claims of peers are judged.
type Identity struct {
	// Seen is what Remember was given last, by any life of this member. Remember returns once it is on disk.
	Seen     []identity.Seen
	Remember func([]identity.Seen) error
	// Refused, if set, is told when a peer refuses this member for a reason of its data directory, and says whether it obeys:
	// see identity.Obey.
	Refused func(by consensus.MemberID, refusal *identity.Refusal) (obeys bool)
	// Removed, if set, reports whether a member was removed for ever. Nothing is heard of it, and it is answered that.
	Removed func(consensus.MemberID) bool
	// CheckCertificate judges the certificates of processes that connect; nil: they prove nothing, as they are not verified.
	CheckCertificate CertificateCheck
	Rules            identity.Rules // for tests
	// HasConfig says that this member knows a configuration, which Configure will tell: nothing is heard before. One that joins
	// has none, and hears any member that feeds it.
	HasConfig bool
}

// Queue bounds what waits for one peer.
type Queue struct {
	Messages int // default 8192
	Bytes    int // default 64 MiB
}

// Times are how long connections wait for what.
type Times struct {
	Dial       time.Duration // for one URL; default 2s
	BackoffMin time.Duration // before the first retry; default 20ms
	BackoffMax time.Duration // default 500ms
	// DeadAfter is how long a peer may leave pings unanswered before its connections are torn down; default 3s.
	// It should be a few election timeouts: this finds half-open connections, not dead leaders.
	DeadAfter time.Duration
	// IdleAfter is how long a connection to us may be without a stream or call; default one minute. A member always has a
	// stream on its connections.
	IdleAfter time.Duration
}

// Snapshot bounds the snapshots on their way.
type Snapshot struct {
	Most           int   // at once, in each direction; default 2
	BytesPerSecond int64 // of each snapshot sent; zero for no limit
}

// PackWhen says when frames to a peer are packed.
type PackWhen string

// The values of Packing.When. A member that never packs does not unpack either: it is sent plain frames.
const (
	PackAuto   PackWhen = "auto" // while the peer is packedTrip away, or more; the default
	PackAlways PackWhen = "always"
	PackNever  PackWhen = "never"
)

// Packing says when frames are packed, and what memory that may take.
type Packing struct {
	When  PackWhen // default PackAuto
	Bytes int64    // of all streams, in both directions; those for which there is none are not packed. Default 16 MiB
}

const (
	// helloTimeout bounds how long the hello of a stream, or a call, may take to arrive. While more than maxUnmet are waited
	// for, it is manyHelloTimeout.
	helloTimeout     = 10 * time.Second
	maxUnmet         = 64
	manyHelloTimeout = 2 * time.Second
)

func (o *Options) setDefaults() {
	setDefault(&o.Queue.Messages, 8192)
	setDefault(&o.Queue.Bytes, 64<<20)
	setDefault(&o.Times.Dial, 2*time.Second)
	setDefault(&o.Times.BackoffMin, 20*time.Millisecond)
	setDefault(&o.Times.BackoffMax, 500*time.Millisecond)
	setDefault(&o.Times.DeadAfter, 3*time.Second)
	setDefault(&o.Times.IdleAfter, time.Minute)
	setDefault(&o.Snapshot.Most, 2)
	setDefault(&o.Packing.When, PackAuto)
	setDefault(&o.Packing.Bytes, 16<<20)
	if o.Hello == (admission.FirstMessageLimits{}) {
		o.Hello = admission.FirstMessageLimits{Timeout: helloTimeout, Many: maxUnmet, ManyTimeout: manyHelloTimeout}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// streamWindow is the window of a stream that a process opened to us.
func (o *Options) streamWindow() int32 {
	if o.UnknownBytes == 0 {
		return streamWindowBytes
	}
	return int32(max(64<<10, min(streamWindowBytes, o.UnknownBytes/4)))
}

func setDefault[T int | int64 | time.Duration | PackWhen](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

func (t *TLS) forDialling() *tls.Config {
	if t.Dial != nil {
		return t.Dial()
	}
	return t.Client
}
