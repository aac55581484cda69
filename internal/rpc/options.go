package rpc

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/gate"
	"github.com/quorate/quorate/internal/rpc/membershipapi"
	"github.com/quorate/quorate/internal/rpc/writerapi"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// Options are the dependencies and the limits of the services. Zero limits mean etcd's defaults.
type Options struct {
	Member Backend
	// Membership is the native membership service of the same member; nil leaves it out.
	Membership membershipapi.Cluster
	// Clients is the member's part for native clients; nil leaves their service out.
	Clients writerapi.Clients
	Version Version
	// Login checks passwords and tokens; nil: simple tokens.
	Login Login
	// Certificates: clients must present a certificate, whose common name is their user.
	Certificates bool
	Logger       *slog.Logger
	Clock        env.Clock

	ElectionTimeout time.Duration
	// ConnectedSince returns since when this member has a working connection to another one. Membership changes are refused
	// while too few connections are old enough.
	ConnectedSince func(consensus.MemberID) (time.Time, bool)
	// StrictReconfig refuses membership changes that would endanger the quorum.
	StrictReconfig bool

	Limits
	Answers *answers.Budget // memory for answers; nil: one of the default size
	// Held counts the resources that clients hold by being connected, and Renewals the streams that renew leases when Held has
	// no room; nil: of the default size.
	Held, Renewals *admission.Ledger
	// LowDisk returns a sentence while the disk is nearly full; empty: it has room; nil: it always has. While the disk is
	// nearly full, growing writes are refused, and backups.
	LowDisk func() string
	// Room is where backups claim the disk that they need; nil: there is room.
	Room *reserve.Watch
	// BackupBytes bounds the memory of all backups while they are made.
	BackupBytes int64
	// DeletionBytes bounds the keys that one command deletes, and those of one lease, with deletedKeyBytes for each.
	DeletionBytes int64
	// TopBytes bounds the counts of the busiest prefixes and clients.
	TopBytes int64
	// State bounds replicated state in memory; zero: of the default size.
	State                 memory.State
	WatchProgressInterval time.Duration // between progress notifications of a quiet watcher
	SlowRequest           time.Duration // requests that take longer are logged
	Tracer                gate.Tracer   // records what happens inside of some calls; nil: nothing is recorded
	// Audit records calls; nil: none are.
	Audit *trail.Trail
	// AllowedHosts are the names by which HTTP requests that are not encrypted may address this member, AllowedOrigins the
	// pages whose scripts may read the answers. None, or "*", means all.
	AllowedHosts, AllowedOrigins []string
	// Keys are those of the data directory; nil: it is not encrypted.
	Keys *KeyTools
	// RefusesPlace says why this member would not ship a continuous backup to a place; empty: it would; nil: it refuses none.
	RefusesPlace func(url string) string
	// TempDir is where a backup is built before it is streamed; it needs as much room as the data. Empty: this member may write
	// nothing in the clear, and sends no backup.
	TempDir string
	// Stalled returns an error if the member hangs: if a part that every request needs has worked on one task for longer than
	// limit. It must not wait for the member. Nil: it never hangs.
	Stalled func(limit time.Duration) error
	// Superseded returns why this member serves nothing, because its cluster was recovered without it; nil: it serves.
	Superseded func() error
	// Troubles returns the sentences that Status shows beside alarms: one for each member of another epoch of the cluster, for
	// each running process of another history of it, and for a disk that is nearly full.
	Troubles func() []string
	// Observe returns what the member observes of itself and its peers, at once, and its series if that is wanted; nil leaves
	// the Doctor service out.
	Observe func(ctx context.Context, series bool) *quoratepb.Observation
	// Collect and CollectTop return what all members observe, and counted; nil: only this one is asked. The results are not
	// changed.
	Collect    func(ctx context.Context, series bool) (*quoratepb.Collected, error)
	CollectTop func(ctx context.Context, r *quoratepb.TopRequest) (*quoratepb.TopAnswer, error)
	// Defragment frees disk space; nil if the store does not need it.
	Defragment func(context.Context) error
	// ExtensiveMetrics adds a histogram of latencies for every method.
	ExtensiveMetrics bool
}

// Login checks passwords and tokens: *login.Login.
type Login interface {
	Hash(ctx context.Context, password string) ([]byte, error)
	Login(ctx context.Context, state *auth.State, user, password string) (token string, err error)
	access.Tokens
	Stats() login.Stats
}

// Limits are the limits of one client's requests, and of all.
type Limits struct {
	MaxRequestBytes      int
	MaxTxnOps            int
	MaxConcurrentStreams uint32
	FirstMessage         admission.FirstMessageLimits // the time for the request of a call to arrive
	QuotaBytes           int64                        // of the store, enforced; negative: none
	ReportedQuotaBytes   int64                        // shown by Status; zero: QuotaBytes
}

// Version is the version that this server reports.
type Version struct {
	Server  string // etcd's version whose behaviour we keep, as "3.7.3"
	Cluster string // as "3.7.0"
	Storage string // as "3.7.0"
}

// Defaults for tests: a server passes the values of its flags (internal/config/table.go).
const (
	defaultMaxRequestBytes = 1.5 * 1024 * 1024
	defaultMaxTxnOps       = 128

	defaultMaxConcurrentStreams = 10_000
	defaultElectionTimeout      = time.Second
	defaultProgressInterval     = 10 * time.Minute
	minProgressInterval         = 100 * time.Millisecond
	defaultSlowRequest          = 300 * time.Millisecond
	defaultQuotaBytes           = 2 * 1024 * 1024 * 1024
	requestOverheadBytes        = 512 * 1024 // by which a message may exceed the largest request

	// healthInterval is how long a connection must have worked to count in checks of membership changes.
	healthInterval = 5 * time.Second
)

// DefaultVersion is the etcd that this server behaves like.
var DefaultVersion = Version{Server: "3.7.3", Cluster: "3.7.0", Storage: "3.7.0"}

func (o *Options) setDefaults() {
	setDefault(&o.MaxRequestBytes, defaultMaxRequestBytes)
	setDefault(&o.MaxTxnOps, defaultMaxTxnOps)
	if o.Answers == nil {
		o.Answers = answers.New(0, 0)
	}
	if o.Held == nil {
		o.Held = admission.NewLedger(memory.Divide(memory.DefaultMost).Clients.Total)
	}
	if o.Renewals == nil {
		o.Renewals = admission.NewLedger(memory.Divide(memory.DefaultMost).Clients.Renewals)
	}
	setDefault(&o.BackupBytes, memory.Divide(memory.DefaultMost).Backups)
	setDefault(&o.DeletionBytes, memory.Divide(memory.DefaultMost).Deletion)
	setDefault(&o.TopBytes, memory.Divide(memory.DefaultMost).Top)
	setDefault(&o.State, memory.Divide(memory.DefaultMost).State)
	setDefault(&o.MaxConcurrentStreams, defaultMaxConcurrentStreams)
	setDefault(&o.FirstMessage, defaultFirstMessage)
	setDefault(&o.ElectionTimeout, defaultElectionTimeout)
	setDefault(&o.WatchProgressInterval, defaultProgressInterval)
	setDefault(&o.SlowRequest, defaultSlowRequest)
	setDefault(&o.QuotaBytes, defaultQuotaBytes)
	setDefault(&o.ReportedQuotaBytes, o.QuotaBytes)
	setDefault(&o.Version, DefaultVersion)
	o.WatchProgressInterval = max(o.WatchProgressInterval, minProgressInterval)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = env.WallClock{}
	}
	if o.Login == nil {
		simple, _ := login.New(login.Options{Clock: o.Clock}) // only files of keys can be invalid
		o.Login = simple
	}
	if o.Superseded == nil {
		o.Superseded = func() error { return nil }
	}
	if o.Troubles == nil {
		o.Troubles = func() []string { return nil }
	}
	if o.LowDisk == nil {
		o.LowDisk = func() string { return "" }
	}
	if o.Stalled == nil {
		o.Stalled = func(time.Duration) error { return nil }
	}
	if o.ConnectedSince == nil {
		o.ConnectedSince = func(consensus.MemberID) (time.Time, bool) { return time.Time{}, false }
	}
}

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

// maxMessageBytes is the largest message that a client may send, and roughly the largest watch response.
func (o *Options) maxMessageBytes() int { return o.MaxRequestBytes + requestOverheadBytes }

// minLeaseTTL is the shortest TTL that a lease gets, in seconds: one and a half election timeouts, so that a lease
// outlives the election of a new leader.
func (o *Options) minLeaseTTL() int64 {
	return int64(math.Ceil((o.ElectionTimeout * 3 / 2).Seconds()))
}
