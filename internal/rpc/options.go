package rpc

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/rpc/access"
	"github.com/quorate/quorate/internal/rpc/authapi"
	"github.com/quorate/quorate/internal/rpc/membershipapi"
	"github.com/quorate/quorate/internal/rpc/writerapi"
	"github.com/quorate/quorate/internal/storage/reserve"
)

// Options say what the services serve and within which limits. Zero limits mean etcd's defaults.
type Options struct {
	Member Backend
	// Membership is that of the same member, for the native membership service; nil leaves that out.
	Membership membershipapi.Cluster
	// Clients is what it does for native clients; nil leaves that service out.
	Clients writerapi.Clients
	Version Version
	// Login knows passwords and tokens; nil: simple tokens.
	Login Login
	// Certificates says that clients must show a certificate, whose common name is their user.
	Certificates bool
	Logger       *slog.Logger
	Clock        env.Clock

	ElectionTimeout time.Duration
	// ConnectedSince tells since when this member has a working connection to another one. Membership changes are
	// refused while too few connections are old enough.
	ConnectedSince func(consensus.MemberID) (time.Time, bool)
	// StrictReconfig refuses membership changes that would endanger the quorum.
	StrictReconfig bool

	Limits
	Answers *answers.Budget // memory for answers; nil: one of the default size
	// Held counts what clients hold by being there, and Renewals the streams that renew leases when Held has no room; nil:
	// of the default size.
	Held, Renewals *admission.Ledger
	// LowDisk says in a sentence that the disk is nearly full, empty: it has room; nil: it always has. While it says so,
	// writes that grow are refused, and backups.
	LowDisk func() string
	// Room is where backups claim the disk that they need; nil: there is room.
	Room *reserve.Watch
	// BackupBytes is what all backups may have in memory while they are made.
	BackupBytes int64
	// DeletionBytes is what the keys that one command deletes may have, and those of one lease, with deletedKeyBytes for each.
	DeletionBytes int64
	// State bounds replicated state in memory; zero: of the default size.
	State                 memory.State
	WatchProgressInterval time.Duration // between progress notifications of a quiet watcher
	SlowRequest           time.Duration // requests that take longer are logged
	// AllowedHosts are the names by which HTTP requests that are not encrypted may call this member, AllowedOrigins the
	// pages whose scripts may read what it answers. None, or "*", means all.
	AllowedHosts, AllowedOrigins []string
	// TempDir is where a backup is built before it is streamed. It is on the same disk as the data, because it needs
	// as much space.
	TempDir string
	// Stalled tells whether the member hangs: whether something that every request needs has been at one piece of work
	// for longer than limit. It must not wait for the member. Nil: it never hangs.
	Stalled func(limit time.Duration) error
	// Superseded returns why this member serves nothing, because its cluster was recovered without it; nil: it serves.
	Superseded func() error
	// Troubles returns what Status shows beside alarms: a sentence for each member of another epoch of the cluster, for
	// each process of another history of it that is about, and for a disk that is nearly full.
	Troubles func() []string
	// Defragment gives disk space back; nil if the store needs none of that.
	Defragment func(context.Context) error
	// ExtensiveMetrics adds a histogram of latencies for every method.
	ExtensiveMetrics bool
}

// Login knows passwords and tokens: *login.Login.
type Login interface {
	authapi.Login
	access.Tokens
	Stats() login.Stats
}

// Limits are what one client may ask for, and all.
type Limits struct {
	MaxRequestBytes      int
	MaxTxnOps            int
	MaxConcurrentStreams uint32
	FirstMessage         admission.FirstMessageLimits // how long the request of a call may take to arrive
	QuotaBytes           int64                        // of the store, enforced; negative: none
	ReportedQuotaBytes   int64                        // what Status says; zero: QuotaBytes
}

// Version is what this server says it is.
type Version struct {
	Server  string // etcd's version whose behaviour we keep, as "3.7.1"
	Cluster string // as "3.7.0"
	Storage string // as "3.7.0"
}

// Defaults for tests: a server gives what its flags say (internal/config/table.go).
const (
	defaultMaxRequestBytes = 1.5 * 1024 * 1024
	defaultMaxTxnOps       = 128

	defaultMaxConcurrentStreams = 10_000
	defaultElectionTimeout      = time.Second
	defaultProgressInterval     = 10 * time.Minute
	minProgressInterval         = 100 * time.Millisecond
	defaultSlowRequest          = 300 * time.Millisecond
	defaultQuotaBytes           = 2 * 1024 * 1024 * 1024
	requestOverheadBytes        = 512 * 1024 // what a message may exceed the largest request by

	// healthInterval is how long a connection must have worked to count when membership is changed.
	healthInterval = 5 * time.Second
)

// DefaultVersion is the etcd that this server behaves like.
var DefaultVersion = Version{Server: "3.7.1", Cluster: "3.7.0", Storage: "3.7.0"}

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
		simple, _ := login.New(login.Options{Clock: o.Clock}) // only files of keys can be unusable
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
