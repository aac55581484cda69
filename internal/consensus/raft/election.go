package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// A cordoned voter (cordon.go) waits for cordonWait to cordonWait+1 election timeouts before it campaigns.
const cordonWait = 3

// resetCampaign draws the tick of the next campaign. The spread keeps candidates apart (Raft paper, section 5.2). After a
// start, or once the connection to the leader broke, the waits are short, each up to twice as long as the one before, until
// they are as long as usual. A cordoned member waits longer, and its waits are never short: the others campaign first.
func (r *Replica) resetCampaign() {
	if r.selfCordoned() {
		r.elect.spread = 0
		least := cordonWait * r.opts.ElectionTicks
		r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(least, least+r.opts.ElectionTicks-1))
		return
	}
	if r.elect.spread > 0 && r.elect.spread < r.opts.ElectionTicks && !r.opts.LeaderLease {
		r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(1, r.elect.spread))
		r.elect.spread *= 2
		return
	}
	r.elect.spread = 0
	r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(r.opts.ElectionTicks, 2*r.opts.ElectionTicks-1))
}

// hearLeader notes a message from the current leader.
func (r *Replica) hearLeader() {
	r.elect.heardAt, r.elect.ledAt, r.elect.spread, r.elect.suspect = r.clock.now, r.clock.now, 0, false
	if r.opts.LeaderLease {
		r.elect.patientUntil = max(r.elect.patientUntil, r.clock.now+uint64(r.opts.ElectionTicks))
	}
	r.resetCampaign()
}

// needed reports whether a candidate has lately asked for this member's vote although this member is no voter by its own log.
// It needs pre-vote: without, such a member could disturb a cluster that has a leader.
func (r *Replica) needed() bool {
	return r.elect.neededAt > 0 && r.opts.PreVote && r.clock.now-r.elect.neededAt < neededFor*uint64(r.opts.ElectionTicks)
}

// neededFor is the number of election timeouts for which such a request lets this member be a candidate.
const neededFor = 4

// suspectLeader acts on the evidence that the leader died: this member refuses no candidate for its sake any more, and
// campaigns soon. Under a leader lease the promise to wait stands: reads of the leader depend on it.
func (r *Replica) suspectLeader(member consensus.MemberID) {
	if r.role != Follower || r.leader != member || r.elect.suspect || r.opts.LeaderLease {
		return
	}
	r.elect.suspect, r.elect.spread = true, max(3, r.opts.HeartbeatTicks/2)
	r.out.event(LeaderSuspected{Leader: member})
	r.resetCampaign()
}

// hearsLeader reports whether this member must not help to depose a leader that seems alive (Raft thesis, section 4.2.3), so
// that a removed or cut-off member cannot disrupt the cluster.
func (r *Replica) hearsLeader() bool {
	if r.promised() {
		return true
	}
	if !r.opts.CheckQuorum {
		return false
	}
	if r.lead != nil {
		return true
	}
	return r.heardLately()
}

// heardLately reports whether this member follows a leader of which it heard within an election timeout and which it does not
// suspect.
func (r *Replica) heardLately() bool {
	return r.leader != consensus.NoMember && !r.elect.suspect && r.clock.now-r.elect.heardAt < uint64(r.opts.ElectionTicks)
}

// unledFor is the number of election timeouts after which a member without a leader takes votes, and a leader, from a process
// that its log does not know. The members that it knows elect a leader in that time, if they can.
const unledFor = 10

// longUnled reports whether this member has had no leader, and has not led, for so long; the time before its start does not
// count.
func (r *Replica) longUnled() bool {
	return r.lead == nil && r.clock.now-r.elect.ledAt >= unledFor*uint64(r.opts.ElectionTicks)
}

// campaignWithin draws the tick of the next campaign, at most ticks from now.
func (r *Replica) campaignWithin(ticks int) {
	r.elect.campaignAt = r.clock.now + uint64(r.elect.rng.between(1, ticks))
}

// releasePromise ends the promise to a leader, because that leader asked for an election.
func (r *Replica) releasePromise() { r.elect.patientUntil = 0 }

// askForVotes asks every voter. A vote request leaves only once the term and the own vote are durable: a candidate that forgot
// them could ask again in the same term with a shorter log, and be elected by the answers to its first request.
func (r *Replica) askForVotes(kind consensus.MessageKind, term consensus.Term, force bool) {
	c := r.configs.Config()
	ask := func(id consensus.MemberID) {
		if id == r.opts.ID {
			return
		}
		m := consensus.Message{Kind: kind, To: id, Term: term, Last: r.log.LastPosition(), Force: force}
		r.attachCommit(&m)
		r.send(m, kind == consensus.MsgVote)
	}
	for _, id := range c.Voters {
		ask(id)
	}
	for _, id := range c.Outgoing {
		if !slices.Contains(c.Voters, id) {
			ask(id)
		}
	}
}

// attachCommit puts this member's commit index, and the term there, into a vote request or its answer. A candidate whose commit
// index is lower so learns which configuration is in force before it counts (etcd issue 12359).
func (r *Replica) attachCommit(m *consensus.Message) {
	if term, ok := r.log.Term(r.log.Commit()); ok {
		m.Committed = consensus.Position{Index: r.log.Commit(), Term: term}
	}
}

// startTally begins to count votes, with this member's own.
func (r *Replica) startTally() {
	r.elect.votes.Reset()
	r.elect.votes.Grant(r.opts.ID)
	r.elect.logBehind = false
}

// keepPromise restores, at the start, the promise of an earlier life, and notes the one that this member makes from now on.
func (r *Replica) keepPromise(hard *consensus.HardState) {
	r.hard.promiseFor(max(r.opts.promise(), hard.Promise))
	if hard.Term > 0 {
		// The tick of the leader's last message is lost. One tick more: the first may come at once.
		r.elect.patientUntil = (r.hard.promise+r.opts.tickMicros()-1)/r.opts.tickMicros() + 1
		if r.hard.promise == 0 {
			r.elect.patientUntil = 0
		}
	}
}

// endPromise drops a longer promise of an earlier life once no leader can rely on it any more.
func (r *Replica) endPromise() {
	if r.clock.now >= r.elect.patientUntil {
		r.hard.promiseFor(r.opts.promise())
	}
}

// promised reports whether a leader may still have a lease that depends on a promise of this member. Meanwhile the member helps
// to elect no other, nor itself. Only a vote request made at a leader's demand (Force) ends it early.
func (r *Replica) promised() bool { return r.clock.now < r.elect.patientUntil }

// delayCampaign draws a new wait for a member that was cordoned after its last wait was drawn.
func (r *Replica) delayCampaign() {
	if r.lead == nil && r.selfCordoned() {
		r.resetCampaign()
	}
}
