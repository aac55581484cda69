package member

import (
	"context"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/raising"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/membership"
)

// Options configure a member. Data is the result of datadir.Open.
type Options struct {
	Data         *datadir.Data
	Raft         raft.Options
	TickInterval time.Duration
	// PeerURLs are the URLs at which other members reach this member, from --initial-advertise-peer-urls, if it was given;
	// empty: those of the configuration.
	PeerURLs []string

	RequestTimeout  time.Duration // for requests without a deadline of their own
	MaxRequestBytes int           // of an encoded command; zero: unlimited
	OpenBytes       int           // of proposals that wait for their results; zero: the default of package proposals
	Retention       upkeep.Retention
	Compaction      upkeep.CompactionPace
	Integrity       integrity.Pace
	FastPath        offers.Setting
	CommitDelay     time.Duration     // longest time for which a leader waits for more proposals
	Care            membership.Policy // policy of repairs while this member leads; the zero value is off
	LevelPolicy     level.Policy      // of raising the feature level, of a cluster that has none yet
	// Verdict returns what this member's doctor finds, by what the member knows alone; nil: there is no doctor.
	Verdict func() raising.Verdict
	// Tell returns what this member tells another one of itself that asks, encoded, within MostTold bytes; nil: nothing. The
	// error is a grpc status.
	Tell           func(ctx context.Context, about Subject, question []byte) ([]byte, error)
	Answers        *answers.Budget // memory for results; nil: a budget of the default size
	ClientPatience time.Duration   // how long a native client may be silent; zero: DefaultClientPatience
	SessionBytes   int64           // memory for sessions of native clients; zero: for 10,000 of them
	Clock          env.Clock
	Expiring       func() []string // returns the TLS files that expire soon; nil: none do
	LowDisk        func() string   // returns the alarm text while the disk reserve is used up; nil: it never is
	DiskReserve    int64           // bytes of the disk that a received snapshot must leave free
	Logger         *slog.Logger
	// Feed, if set, takes each batch that was applied. It must not wait.
	Feed Feed
	// Synced and Applied, if set, are called with the time that each write of the log and each applied batch took.
	Synced, Applied func(took time.Duration)
}

// Feed takes what a member applies, for the backup.
type Feed interface {
	Applied(machine *apply.Machine, batch []consensus.Entry, results []kv.Result)
	// Replaced notes that a snapshot has taken the place of the store.
	Replaced(machine *apply.Machine)
}

// diskLow reports whether the disk reserve is used up.
func (o *Options) diskLow() bool { return o.LowDisk != nil && o.LowDisk() != "" }

func (o *Options) heartbeatInterval() time.Duration {
	return time.Duration(o.Raft.HeartbeatTicks) * o.TickInterval
}

func (o *Options) electionTimeout() time.Duration {
	return time.Duration(o.Raft.ElectionTicks) * o.TickInterval
}
