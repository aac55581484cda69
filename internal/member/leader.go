package member

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/broadcast"
	"github.com/quorate/quorate/internal/consensus"
)

// knownLeader is what any goroutine may read of who leads. The loop sets it.
type knownLeader struct {
	self    consensus.MemberID
	leader  atomic.Uint64
	term    atomic.Uint64
	learner atomic.Bool
	lostAt  atomic.Int64 // when the last leader was lost, Unix nanoseconds; zero: none was

	changes broadcast.Signal
}

// init readies it for readers at the member self.
func (k *knownLeader) init(self consensus.MemberID) { k.self = self }

// follow notes who leads, and wakes those who wait for a change.
func (k *knownLeader) follow(leader consensus.MemberID, term consensus.Term, now func() time.Time) {
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

// lostSince reports whether a leader was lost at begun or later.
func (k *knownLeader) lostSince(begun time.Time) bool { return k.lostAt.Load() >= begun.UnixNano() }

// Leader returns the known leader or NoMember.
func (k *knownLeader) Leader() consensus.MemberID { return consensus.MemberID(k.leader.Load()) }

// leads reports whether this member is the known leader.
func (k *knownLeader) leads() bool { return k.Leader() == k.self }

// Term returns the current term.
func (k *knownLeader) Term() consensus.Term { return consensus.Term(k.term.Load()) }

// Learner reports whether this member was added to learn, not to vote once it has caught up.
func (k *knownLeader) Learner() bool { return k.learner.Load() }

// LeaderChanged returns a channel that is closed at the next change of leader, including its loss.
func (k *knownLeader) LeaderChanged() <-chan struct{} { return k.changes.Next() }
