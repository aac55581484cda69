package member

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/broadcast"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// knownLeader is what any goroutine may read of who leads. The loop sets it.
type knownLeader struct {
	self    consensus.MemberID
	leader  atomic.Uint64
	term    atomic.Uint64
	learner atomic.Bool
	lostAt  atomic.Int64 // when the last leader was lost, Unix nanoseconds; zero: none was

	// conflict is what was refused of a leader's log last; nil: nothing was.
	conflict atomic.Pointer[raft.LogConflict]

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

// refuses notes that the log of the leader of a term differs from what is committed here.
func (k *knownLeader) refuses(e raft.LogConflict) { k.conflict.Store(&e) }

// refused returns what is refused of the present leader's log; nil: nothing. A conflict with a leader that another one has
// followed says nothing: that one was deposed and did not know it.
func (k *knownLeader) refused() *raft.LogConflict {
	e := k.conflict.Load()
	if e == nil || e.Leader != k.Leader() || e.Term != k.Term() {
		return nil
	}
	return e
}

// conflictWords say what a refused log means, and what to do. own is the member that refuses it.
func conflictWords(e *raft.LogConflict, own, leader string) string {
	return fmt.Sprintf("%s refuses the log of its leader %s (%v) of term %d: entry %v there is not entry %d here, which is "+
		"committed. If this lasts, a disk was put back to an earlier state, or lost: acknowledged writes may be missing at "+
		"%s and at those that follow it, and %s may have the only copy. Empty, reset and remove no member. Stop the clients, "+
		"then all members, keep all data directories, and see with `quorate recover --data-dir DIR --dry-run` what each has. "+
		"To go on with what %s has, run `quorate recover` on its directory, where --force-behind gives up what was written "+
		"at the others since, and add new members. To go on with the others, start them; move the directory of %s aside, "+
		"keep it, start %s with an empty one, and `quorate member reset "+
		"%s`", own, leader, e.Leader, e.Term, e.At, e.At.Index, leader, own, own,
		own, own, own)
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
