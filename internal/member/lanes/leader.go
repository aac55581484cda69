package lanes

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/base/monotime"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// KnownLeader knows which member leads, in which term. The loop sets it, and any goroutine may read it.
type KnownLeader struct {
	self    consensus.MemberID
	leader  atomic.Uint64
	term    atomic.Uint64
	learner atomic.Bool
	lostAt  monotime.Atomic // when a leader was last lost; unset: never

	// conflict is the last conflict with a leader's log; nil: there was none.
	conflict atomic.Pointer[raft.LogConflict]

	changes broadcast.Signal
}

// NewKnownLeader returns the KnownLeader of the member self, with no leader.
func NewKnownLeader(self consensus.MemberID) *KnownLeader { return &KnownLeader{self: self} }

// Follow notes which member leads, and closes the channel of LeaderChanged if that has changed. Only the loop calls it.
func (k *KnownLeader) Follow(leader consensus.MemberID, term consensus.Term, now func() time.Time) {
	k.term.Store(uint64(term))
	before := consensus.MemberID(k.leader.Swap(uint64(leader)))
	if before == leader {
		return
	}
	if before != consensus.NoMember {
		k.lostAt.Set(now())
	}
	k.changes.Send()
}

// Refuses notes that the log of a term's leader conflicts with entries that are committed here.
func (k *KnownLeader) Refuses(e raft.LogConflict) { k.conflict.Store(&e) }

// Refused returns the conflict with the log of the present leader; nil: there is none. A conflict with an earlier leader proves
// nothing: that leader was deposed and did not know it.
func (k *KnownLeader) Refused() *raft.LogConflict {
	e := k.conflict.Load()
	if e == nil || e.Leader != k.Leader() || e.Term != k.Term() {
		return nil
	}
	return e
}

// LostSince reports whether a leader was lost at begun or later.
func (k *KnownLeader) LostSince(begun time.Time) bool {
	at, lost := k.lostAt.Get()
	return lost && at.Sub(begun) >= 0
}

// Leader returns the known leader or NoMember.
func (k *KnownLeader) Leader() consensus.MemberID { return consensus.MemberID(k.leader.Load()) }

// Self is the id of this member.
func (k *KnownLeader) Self() consensus.MemberID { return k.self }

// Leads reports whether this member is the known leader.
func (k *KnownLeader) Leads() bool { return k.Leader() == k.self }

// Term returns the current term.
func (k *KnownLeader) Term() consensus.Term { return consensus.Term(k.term.Load()) }

// Learner reports whether this member was added as a learner that stays one, and not to be promoted once it has caught up.
func (k *KnownLeader) Learner() bool { return k.learner.Load() }

// LeaderChanged returns a channel that is closed at the next change of leader, including its loss.
func (k *KnownLeader) LeaderChanged() <-chan struct{} { return k.changes.Next() }
