package clients

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/broadcast"
	"github.com/quorate/quorate/internal/consensus"
)

// ClusterState is what this member knows of the cluster that a proposer must know, too: all of it at one moment.
type ClusterState struct {
	Leader consensus.MemberID
	Term   consensus.Term
	Config consensus.ConfigID
	Voters []consensus.MemberID
	Fast   bool // clients may use the fast path: it is not turned off, and no change is under way here

	config consensus.Config
}

// Same reports whether nothing has changed that a proposer must know.
func (s *ClusterState) Same(as *ClusterState) bool {
	return s.Leader == as.Leader && s.Term == as.Term && s.Config == as.Config && s.Fast == as.Fast
}

// clusterBoard shows the cluster's state to any goroutine. The loop of the member sets it.
type clusterBoard struct {
	present atomic.Pointer[ClusterState]
	changes broadcast.Signal
}

// state returns what is known now; the zero value before anything was set.
func (b *clusterBoard) state() ClusterState {
	if s := b.present.Load(); s != nil {
		return *s
	}
	return ClusterState{}
}

func (b *clusterBoard) set(now *ClusterState) {
	if before := b.present.Load(); before != nil && before.Same(now) {
		return
	}
	b.present.Store(now)
	b.changes.Send()
}

// isMember reports whether an id is that of a member, or none, and so cannot be a client's.
func (b *clusterBoard) isMember(id consensus.MemberID) bool {
	s := b.present.Load()
	return id == consensus.NoMember || s != nil && s.config.Contains(id)
}
