package raft

import "github.com/quorate/quorate/internal/consensus"

// Leader returns whom this member follows, itself included, or NoMember. Cheaper than Status, for every round.
func (r *Replica) Leader() consensus.MemberID { return r.leader }

// Term returns the current term.
func (r *Replica) Term() consensus.Term { return r.hard.term }

// Commit returns up to where the log is committed, as far as this member knows.
func (r *Replica) Commit() consensus.Index { return r.log.Commit() }

// InForce returns the configuration in force here.
func (r *Replica) InForce() ConfigInForce {
	c := r.configs.InForce()
	return ConfigInForce{
		ID: r.configs.ID(), Config: *r.configs.Config(), Others: r.configs.Others(), Protocol: c.Protocol,
		Committed: r.configs.Committed(c), Settled: r.configs.Settled(),
	}
}

// Stable reports whether no change of the configuration is under way, as far as this member knows.
func (r *Replica) Stable() bool { return r.configs.Stable() }

// Base returns what the log in memory begins after. The log on disk may forget the rest.
func (r *Replica) Base() consensus.SnapshotMeta {
	return r.configs.MetaAt(r.log.Base())
}

// Inferred returns how many entries that this member proposed it found committed before the leader said so, since it
// started.
func (r *Replica) Inferred() uint64 { return r.inferred }
