package lanes

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/base/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// KnownLeader says which member leads, in which term. The loop sets it, and any goroutine may read it.
type KnownLeader struct {
	self    consensus.MemberID
	leader  atomic.Uint64
	term    atomic.Uint64
	learner atomic.Bool
	lostAt  atomic.Int64 // when the last leader was lost, Unix nanoseconds; zero: none was

	// conflict is what was refused of a leader's log last; nil: nothing was.
	conflict atomic.Pointer[raft.LogConflict]

	changes broadcast.Signal
}

// NewKnownLeader returns what is known at the member self: no leader.
func NewKnownLeader(self consensus.MemberID) *KnownLeader { return &KnownLeader{self: self} }

// Follow notes which member leads, and closes the channel of LeaderChanged if that has changed. The loop calls it.
func (k *KnownLeader) Follow(leader consensus.MemberID, term consensus.Term, now func() time.Time) {
	k.term.Store(uint64(term))
	before := consensus.MemberID(k.leader.Swap(uint64(leader)))
	if before == leader {
		return
	}
	if before != consensus.NoMember {
		k.lostAt.Store(now().UnixNano())
	}
	k.changes.Send()
}

// Refuses notes that the log of the leader of a term differs from what is committed here.
func (k *KnownLeader) Refuses(e raft.LogConflict) { k.conflict.Store(&e) }

// Refused returns what is refused of the present leader's log; nil: nothing. A conflict with a leader that another one has
// followed says nothing: that one was deposed and did not know it.
func (k *KnownLeader) Refused() *raft.LogConflict {
	e := k.conflict.Load()
	if e == nil || e.Leader != k.Leader() || e.Term != k.Term() {
		return nil
	}
	return e
}

// LostSince reports whether a leader was lost at begun or later.
func (k *KnownLeader) LostSince(begun time.Time) bool { return k.lostAt.Load() >= begun.UnixNano() }

// Leader returns the known leader or NoMember.
func (k *KnownLeader) Leader() consensus.MemberID { return consensus.MemberID(k.leader.Load()) }

// Self is this member.
func (k *KnownLeader) Self() consensus.MemberID { return k.self }

// Leads reports whether this member is the known leader.
func (k *KnownLeader) Leads() bool { return k.Leader() == k.self }

// Term returns the current term.
func (k *KnownLeader) Term() consensus.Term { return consensus.Term(k.term.Load()) }

// Learner reports whether this member was added to learn, not to vote once it has caught up.
func (k *KnownLeader) Learner() bool { return k.learner.Load() }

// LeaderChanged returns a channel that is closed at the next change of leader, including its loss.
func (k *KnownLeader) LeaderChanged() <-chan struct{} { return k.changes.Next() }
