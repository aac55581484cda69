package config

import (
	"math"
	"strconv"
	"time"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/base/typed"
)

// Config has all settings of a member that have an effect, by topic. Others are only accepted or refused by name, see
// Compat.
type Config struct {
	Name string
	Zone string // names what fails together with this member; may be empty

	Storage       Storage
	Listen        Listen
	Advertise     Advertise
	Bootstrap     Bootstrap
	Consensus     Consensus
	Care          Care
	LevelPolicy   level.Policy // of a cluster that has none yet
	Limits        Limits
	Keepalive     Keepalive
	GRPCTransport GRPCTransport
	HTTP          HTTP
	Compaction    Compaction
	Monitoring    Monitoring
	Console       ConsoleMode
	Tracing       Tracing
	Audit         Audit
	TLS           TLSSettings
	Auth          Auth
	Encryption    Encryption
	Backup        Backup

	WatchProgressNotifyInterval time.Duration
	FeatureGates                FeatureGates
	PeerDelays                  []PeerDelay // see PeerDelay
	PeerCompression             PeerCompression

	// Warnings are lines for the log: settings without effect, unknown ETCD_ variables, likely mistakes.
	Warnings []string

	compat   map[string]string // settings that are only accepted by name
	explicit map[string]bool   // settings that were given rather than defaulted
	source   string            // path of the configuration file, if there was one
}

// Default returns the configuration of a server started without any flag.
func Default() Config {
	c := Config{compat: map[string]string{}, explicit: map[string]bool{}}
	for i := range settings {
		if err := settings[i].value.set(&c, settings[i].def); err != nil {
			panic("config: default of " + settings[i].name + ": " + err.Error())
		}
	}
	c.derive()
	return c
}

// File returns the path of the configuration file, empty if flags and environment were used.
func (c *Config) File() string { return c.source }

// Explicit tells whether the named setting was given by the operator.
func (c *Config) Explicit(name string) bool { return c.explicit[name] }

// Compat returns the text of a setting that is accepted by name and without effect, such as snapshot-count.
func (c *Config) Compat(name string) string { return c.compat[name] }

// ElectionTicks is the election timeout counted in heartbeats.
func (c *Config) ElectionTicks() int {
	return int(c.Consensus.ElectionTimeout / c.Consensus.HeartbeatInterval)
}

// NewCluster tells whether a first start founds a cluster.
func (c *Config) NewCluster() bool { return c.Bootstrap.ClusterState == ClusterNew }

// defaultReportedQuota is the limit that etcd has, and that its clients expect to read, when none is set.
const defaultReportedQuota = 2 << 30

// Quota returns the size at which the member stops taking writes. etcd's default of 2 GiB protects a store that
// slows down beyond a few GiB; ours does not, so that without an explicit quota there is no limit.
func (c *Config) Quota() (bytes int64, limited bool) {
	return max(c.Storage.QuotaBytes, 0), c.Storage.QuotaBytes > 0
}

// ReportedQuota is what Status answers as its quota.
func (c *Config) ReportedQuota() int64 {
	if c.Storage.QuotaBytes == 0 {
		return defaultReportedQuota
	}
	return c.Storage.QuotaBytes
}

// CompactionMode says whether automatic compaction keeps a time or a number of revisions.
type CompactionMode string

// The compaction modes.
const (
	CompactPeriodic CompactionMode = "periodic"
	CompactRevision CompactionMode = "revision"
)

// Retention is what automatic compaction keeps; at most one field is set, none if it is off.
type Retention struct {
	Period    time.Duration
	Revisions int64
}

// AutoCompaction reads the retention by its mode: a number alone means hours or revisions.
func (c *Config) AutoCompaction() (Retention, error) {
	text := c.Compaction.Retention
	if text == "" {
		return Retention{}, nil
	}
	n, notNumber := strconv.ParseInt(text, 10, 64)
	switch {
	case notNumber == nil && n < 0:
		return Retention{}, errNegative
	case notNumber == nil && c.Compaction.Mode == CompactRevision:
		return Retention{Revisions: n}, nil
	case notNumber == nil && n > math.MaxInt64/int64(time.Hour):
		return Retention{}, errNotRetention
	case notNumber == nil:
		return Retention{Period: time.Duration(n) * time.Hour}, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || c.Compaction.Mode == CompactRevision:
		return Retention{}, errNotRetention
	case d < 0:
		return Retention{}, errNegative
	}
	return Retention{Period: d}, nil
}

// StartOver says how this member gets its data from the others. more is what it is started with beside, as in typed.StartOver.
func (c *Config) StartOver(more string) string {
	dirs := c.Storage.DataDir
	if c.Storage.WALDir != "" {
		dirs += " and " + c.Storage.WALDir
	}
	return typed.StartOver(dirs, "this member", more, c.Name)
}
