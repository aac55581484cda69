package member

import (
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/limits/answers"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/integrity"
	"github.com/quorate/quorate/internal/member/offers"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/membership"
)

// Options say how a member runs. Data is what datadir.Open found on disk.
type Options struct {
	Data         *datadir.Data
	Raft         raft.Options
	TickInterval time.Duration
	// PeerURLs are where others reach this member, from --initial-advertise-peer-urls, if it was given; empty: as the
	// configuration says.
	PeerURLs []string

	RequestTimeout  time.Duration // for callers without a deadline of their own
	MaxRequestBytes int           // encoded command; zero: unlimited
	OpenBytes       int           // of proposals that wait for their results; zero: the default of package proposals
	Retention       upkeep.Retention
	Scrub           upkeep.ScrubPace
	Integrity       integrity.Pace
	FastPath        offers.Setting
	CommitDelay     time.Duration     // how long a leader waits at most for more proposals
	Care            membership.Policy // of the members, if this one leads; the zero value is off
	Answers         *answers.Budget   // memory for answers; nil: one of the default size
	ClientPatience  time.Duration     // for how long a native client may be silent; zero: DefaultClientPatience
	SessionBytes    int64             // in memory of the sessions of native clients; zero: of 10,000
	Clock           env.Clock
	Expiring        func() []string // says which TLS files expire soon; nil: none does
	LowDisk         func() string   // returns the alarm text while the disk reserve is used up, else empty; nil: it never is
	DiskReserve     int64           // bytes of the disk that a received snapshot must leave free
	Logger          *slog.Logger
	// Synced and Applied, if set, are told how long each write of the log and each applied batch took.
	Synced, Applied func(took time.Duration)
}

// diskLow reports whether the disk reserve is used up.
func (o *Options) diskLow() bool { return o.LowDisk != nil && o.LowDisk() != "" }

func (o *Options) heartbeatInterval() time.Duration {
	return time.Duration(o.Raft.HeartbeatTicks) * o.TickInterval
}

func (o *Options) electionTimeout() time.Duration {
	return time.Duration(o.Raft.ElectionTicks) * o.TickInterval
}
