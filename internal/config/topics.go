package config

import "time"

// Storage has the directories of a member, their limits, and how often contents are compared.
type Storage struct {
	DataDir             string // never empty after Load: NAME.etcd by default
	WALDir              string // empty: inside DataDir
	QuotaBytes          int64  // see Config.Quota and Config.ReportedQuota
	DiskReserveBytes    int64  // free bytes to keep on the disks; zero: none
	SnapshotSendRate    int64  // bytes per second and snapshot; zero for no limit
	BootDefragMegabytes int    // freeable, from which on to defragment at the start; 0: never
	SnapshotLogBytes    int    // bytes of log kept for a member that is sent a snapshot
	UnsafeNoFsync       bool

	CorruptCheckTime     time.Duration // between two comparisons of all data; 0: never
	CompactHashCheckTime time.Duration // between two comparisons of hashes; 0: never
}

// Listen is where a member listens.
type Listen struct {
	PeerURLs       []URL
	ClientURLs     []URL
	ClientHTTPURLs []URL // if there are any, ClientURLs serve gRPC only
	MetricsURLs    []URL
	ConsoleURLs    []URL // encrypted beyond this machine

	ReusePort, ReuseAddress bool // SO_REUSEPORT and SO_REUSEADDR of the TCP ports above
}

// Advertise is where others reach a member.
type Advertise struct {
	PeerURLs   []URL
	ClientURLs []URL
}

// Bootstrap says how a member starts a new cluster or joins one. It is read once, when the data directory is empty.
type Bootstrap struct {
	InitialCluster []InitialMember
	ClusterState   ClusterState
	Founding       Founding // of a new cluster
	ClusterToken   string
	Join           []URL  // peer URLs of members to ask; then InitialCluster and ClusterState are ignored
	JoinLearner    bool   // join as a learner
	JoinToken      string // a secret that lets this process join, if the cluster asks for one
	Replaces       string // name or id of the member to remove once this one has caught up

	Discovery Discovery
	DNS       DNS

	// ForceNewCluster makes this member the only one of a new cluster that keeps its contents.
	ForceNewCluster bool
}

// Discovery says in which running cluster the members of a new one find each other: see package discovery.
type Discovery struct {
	Token     string
	Endpoints []string

	DialTimeout, RequestTimeout      time.Duration
	KeepAliveTime, KeepAliveTimeout  time.Duration
	InsecureTransport, SkipVerify    bool
	CertFile, KeyFile, TrustedCAFile string
	User, Password                   string
}

// DNS says in which SRV records the members of a cluster are found: see package server/discovery/srv.
type DNS struct {
	Domain  string // empty: in none
	Service string
}

// Consensus has the timeouts and variants of the protocol.
type Consensus struct {
	HeartbeatInterval   time.Duration
	ElectionTimeout     time.Duration
	PreVote             bool
	LeaderLease         bool
	StrictReconfigCheck bool
	MaxLearners         int
	FastPath            FastPath
	CommitDelay         time.Duration // of a batch of writes after the one before it, at most
}

// Care is what a leader does about dead voters.
type Care struct {
	Mode      AutoCare
	DeadAfter time.Duration
	Voters    int // 0: as many as there are
}

// Limits bound the requests of clients.
type Limits struct {
	MaxRequestBytes      int
	MaxTxnOps            int
	MaxResponseBytes     int64
	ResponseMemoryBytes  int64
	Memory               Memory // of the process, from which the others follow
	MaxConcurrentStreams uint32
}

// PeerCompression says when what is sent to other members is compressed.
type PeerCompression string

// The values of --peer-compression.
const (
	CompressAuto   PeerCompression = "auto"
	CompressAlways PeerCompression = "always"
	CompressNever  PeerCompression = "never"
)

// GRPCTransport is what speaks HTTP/2 with clients.
type GRPCTransport string

// The transports: grpc-go's, and ours (package rpc/front).
const (
	TransportGRPCGo GRPCTransport = "grpc-go"
	TransportOwn    GRPCTransport = "quorate"
)

// Keepalive is how the server and its clients ping each other.
type Keepalive struct {
	MinTime  time.Duration // clients that ping more often are disconnected
	Interval time.Duration // 0: never
	Timeout  time.Duration
}

// HTTP says which clients the HTTP endpoints serve.
type HTTP struct {
	CORS          []string
	HostWhitelist []string
	Gateway       bool // the API as JSON
}

// Compaction is automatic compaction, and the pace of every compaction.
type Compaction struct {
	Mode          CompactionMode
	Retention     string // see Config.AutoCompaction
	BatchLimit    int
	SleepInterval time.Duration
}

// Monitoring has logging, metrics and profiling.
type Monitoring struct {
	Metrics                string
	EnablePprof            bool
	LogLevel               string
	LogFormat              string
	LogOutputs             []string
	EnableLogRotation      bool
	LogRotationJSON        string // see Config.LogRotation
	WarningApplyDuration   time.Duration
	WarningRequestDuration time.Duration
}

// Audit says where records of calls go.
type Audit struct {
	BestEffort, Required []string
	Deadline             time.Duration
	Exempt               string
	RotationJSON         string // see Config.AuditRotation
	CollectorCAFile      string // of the authorities of collectors
}

// Tracing says where spans of calls go.
type Tracing struct {
	Enabled    bool
	Address    string // of the collector, host and port
	Service    string
	Instance   string // empty: none
	PerMillion int    // calls recorded, of a million
}

// Auth says how users log in.
type Auth struct {
	Token      string        // kind of tokens: see Config.JWT
	TokenTTL   time.Duration // of simple tokens, after the last use; zero: etcd's default
	BcryptCost int           // of the hashes of new passwords
}

// TLSSettings are the TLS settings of all connections.
type TLSSettings struct {
	Client             TLS // of the client, HTTP and metrics URLs
	Peer               TLS
	SelfSignedValidity int // in years
	MinVersion         TLSVersion
	MaxVersion         TLSVersion // 0: the newest
	CipherSuites       []string   // see CipherIDs
}
