package raft

import "github.com/quorate/quorate/internal/consensus"

// Leader returns whom this member follows, itself included, or NoMember. Cheaper than Status, for every round.
func (r *Replica) Leader() consensus.MemberID { return r.leader }

// Term returns the current term.
func (r *Replica) Term() consensus.Term { return r.term }

// InForce returns the configuration in force here.
func (r *Replica) InForce() ConfigInForce {
	in := r.inForce()
	return ConfigInForce{ID: in.id, Config: in.config}
}

// Base returns what the log in memory begins after. The log on disk may forget the rest.
func (r *Replica) Base() consensus.SnapshotMeta {
	return consensus.SnapshotMeta{Mark: r.log.base, Config: r.configs[0].config, ConfigID: r.configs[0].id}
}
