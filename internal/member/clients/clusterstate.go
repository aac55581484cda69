package clients

import (
	"sync/atomic"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
)

// ClusterState is the part of this member's state of the cluster that a proposer needs, taken at one moment.
type ClusterState struct {
	Leader consensus.MemberID
	Term   consensus.Term
	Config consensus.ConfigID
	Voters []consensus.MemberID
	Fast   bool // clients may use the fast path: it is turned on, and no membership change is under way

	config consensus.Config
}

// Same reports whether nothing has changed that a proposer must know.
func (s *ClusterState) Same(as *ClusterState) bool {
	return s.Leader == as.Leader && s.Term == as.Term && s.Config == as.Config && s.Fast == as.Fast
}

// clusterBoard publishes the cluster's state to all goroutines. The loop of the member sets it.
type clusterBoard struct {
	present atomic.Pointer[ClusterState]
	changes broadcast.Signal
}

// state returns the latest state; the zero value before the first one is set.
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

// isMember reports whether an id cannot be a client's, because it is a member's or NoMember.
func (b *clusterBoard) isMember(id consensus.MemberID) bool {
	s := b.present.Load()
	return id == consensus.NoMember || s != nil && s.config.Contains(id)
}
