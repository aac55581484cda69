package raft

import (
	"github.com/quorate/quorate/internal/consensus/filter"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// stats counts what happened since the start.
type stats struct {
	dropped filter.Counts
	log     LogCounts
}

// Counts are what happened in a replica since it started.
type Counts struct {
	Fast    FastCounts
	Refused filter.Counts
	Log     LogCounts
}

// LogCounts say how much memory the log takes, and how often its bounds were met.
type LogCounts struct {
	raftlog.Bytes
	Withheld uint64 // appends, not taken because too much waits to be applied
	Outrun   uint64 // snapshots to followers, given up because the log had grown too far beyond them
}

// FastCounts returns what the fast path did here.
func (r *Replica) FastCounts() FastCounts { return r.fast.Counts() }

// Counts returns what happened here since the start.
func (r *Replica) Counts() Counts {
	log := r.stats.log
	log.Bytes = r.log.Bytes()
	return Counts{Fast: r.fast.Counts(), Refused: r.stats.dropped, Log: log}
}
