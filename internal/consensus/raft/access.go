package raft

import "github.com/quorate/quorate/internal/consensus"

// Leader returns the member that this one follows, itself if it leads, or NoMember. It is cheaper than Status.
func (r *Replica) Leader() consensus.MemberID { return r.leader }

// Term returns the current term.
func (r *Replica) Term() consensus.Term { return r.hard.term }

// Commit returns the last index that this member knows to be committed.
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

// Base returns the position after which the log in memory begins. The log on disk may drop the entries up to it.
func (r *Replica) Base() consensus.SnapshotMeta {
	return r.configs.MetaAt(r.log.Base())
}

// Inferred returns how many of its own proposals' entries this member found committed before the leader said so, since its
// start.
func (r *Replica) Inferred() uint64 { return r.inferred }
