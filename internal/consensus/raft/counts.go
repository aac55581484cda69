package raft

import "github.com/quorate/quorate/internal/consensus/filter"

// Counts are what happened in a replica since it started.
type Counts struct {
	Fast    FastCounts
	Refused filter.Counts
	Log     LogCounts
}

// FastCounts returns what the fast path did here.
func (r *Replica) FastCounts() FastCounts { return r.fast.Counts() }

// Counts returns what happened here since the start.
func (r *Replica) Counts() Counts {
	log := r.stats.logCounts
	log.Bytes = r.log.Bytes()
	return Counts{Fast: r.fast.Counts(), Refused: r.stats.dropped, Log: log}
}
