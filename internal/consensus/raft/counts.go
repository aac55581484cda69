package raft

import "github.com/quorate/quorate/internal/consensus/filter"

// Counts are numbers of events in a replica since its start.
type Counts struct {
	Fast    FastCounts
	Refused filter.Counts
	Log     LogCounts
}

// FastCounts returns the counts of the fast path.
func (r *Replica) FastCounts() FastCounts { return r.fast.Counts() }

// Counts returns the counts of this replica.
func (r *Replica) Counts() Counts {
	log := r.stats.logCounts
	log.Bytes = r.log.Bytes()
	return Counts{Fast: r.fast.Counts(), Refused: r.stats.dropped, Log: log}
}
