package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
	"github.com/quorate/quorate/internal/consensus/raftlog"
)

// election is when a member campaigns, what it owes to leaders that it heard, and the votes that it was given. It belongs
// to every role: a leader, too, draws when it would campaign.
type election struct {
	opts    *Options
	clock   *clock
	hard    *hardState
	soft    *softState
	out     *outbox
	log     *raftlog.Log
	configs *configs.History
	cordon  *configs.Cordon
	rng     random

	heardAt    uint64 // when the leader was heard last, or this term's role began
	ledAt      uint64 // when any leader was heard last, this member among them
	campaignAt uint64 // when to campaign unless a leader is heard
	spread     int    // of the next wait, in ticks, while waits are short; else zero
	suspect    bool   // the connection to the leader broke: refuse nobody for its sake
	// patientUntil is when the last leader that was heard, in any term, can no longer have a lease for that reason.
	patientUntil uint64

	votes     configs.Votes
	logBehind bool // a voter that refused has a better log
	removed   bool // for ever: never campaign again
	// neededAt is when a candidate asked this member last that has a worse log and cannot win without it: noteNeeded.
	neededAt uint64
	// A leader asked this member to campaign in the term askedIn, and a change has to be applied first.
	askedIn   consensus.Term
	askForced bool // no other voter can lead
}

// A cordoned voter (configs.Cordon) waits for cordonWait to cordonWait+1 election timeouts before it campaigns.
const cordonWait = 3

// resetCampaign draws when to campaign next. The spread keeps candidates apart (Raft paper, section 5.2). After a start,
// or once the connection to the leader broke, the waits are short, each twice as long as the one before, until the
// usual one is reached. A cordoned member waits longer, and never shortly: the others go first.
func (e *election) resetCampaign() {
	if e.cordon.Self() {
		e.spread = 0
		least := cordonWait * e.opts.ElectionTicks
		e.campaignAt = e.clock.now + uint64(e.rng.between(least, least+e.opts.ElectionTicks-1))
		return
	}
	if e.spread > 0 && e.spread < e.opts.ElectionTicks && !e.opts.LeaderLease {
		e.campaignAt = e.clock.now + uint64(e.rng.between(1, e.spread))
		e.spread *= 2
		return
	}
	e.spread = 0
	e.campaignAt = e.clock.now + uint64(e.rng.between(e.opts.ElectionTicks, 2*e.opts.ElectionTicks-1))
}

// hearLeader notes a sign of life of the current leader.
func (e *election) hearLeader() {
	e.heardAt, e.ledAt, e.spread, e.suspect = e.clock.now, e.clock.now, 0, false
	if e.opts.LeaderLease {
		e.patientUntil = max(e.patientUntil, e.clock.now+uint64(e.opts.ElectionTicks))
	}
	e.resetCampaign()
}

// needed reports whether a candidate has lately asked a member that is no voter by its own log. Without the inquiry before an
// election such a member could disturb those that have a leader.
func (e *election) needed() bool {
	return e.neededAt > 0 && e.opts.PreVote && e.clock.now-e.neededAt < neededFor*uint64(e.opts.ElectionTicks)
}

// neededFor is for how many election timeouts a candidate that asks a member which is no voter keeps that one standing.
const neededFor = 4

// suspectLeader acts on the evidence that the leader died: stop refusing others, and ask soon oneself. Under a leader
// lease the promise to wait stands: reads of the leader rest on it.
func (e *election) suspectLeader(member consensus.MemberID) {
	if e.soft.role != Follower || e.soft.leader != member || e.suspect || e.opts.LeaderLease {
		return
	}
	e.suspect, e.spread = true, max(3, e.opts.HeartbeatTicks/2)
	e.out.event(LeaderSuspected{Leader: member})
	e.resetCampaign()
}

// hearsLeader reports whether this member must not help to depose a leader that seems alive (Raft thesis, section
// 4.2.3): so a removed or cut-off member cannot disrupt.
func (e *election) hearsLeader() bool {
	if e.promised() {
		return true
	}
	if !e.opts.CheckQuorum {
		return false
	}
	if e.soft.role == Leader {
		return true
	}
	return e.heardLately()
}

// heardLately reports whether this member follows a leader that it heard within an election timeout and does not suspect.
func (e *election) heardLately() bool {
	return e.soft.leader != consensus.NoMember && !e.suspect && e.clock.now-e.heardAt < uint64(e.opts.ElectionTicks)
}

// unledFor is for how many election timeouts a member has heard no leader, nor led, that takes votes and a leader from a
// process that its log does not know. The members that it knows elect one in that time, if they can.
const unledFor = 10

// longUnled reports whether so much has passed, since the start at least.
func (e *election) longUnled() bool {
	return e.soft.role != Leader && e.clock.now-e.ledAt >= unledFor*uint64(e.opts.ElectionTicks)
}

// led notes that this member leads no more.
func (e *election) led() { e.ledAt = e.clock.now }

// beginTerm lets the wait for a leader count from now on.
func (e *election) beginTerm() { e.heardAt = e.clock.now }

// endShortWaits lets the next waits be as long as usual.
func (e *election) endShortWaits() { e.spread = 0 }

// campaignWithin draws when to campaign next, soon.
func (e *election) campaignWithin(ticks int) {
	e.campaignAt = e.clock.now + uint64(e.rng.between(1, ticks))
}

// releasePromise ends what was promised to a leader, because that leader said so.
func (e *election) releasePromise() { e.patientUntil = 0 }

// askForVotes asks every voter. A vote leaves only once the term and the own vote are durable: a candidate that forgot
// them could ask again in the same term with a shorter log, and be elected by the answers to the first question.
func (e *election) askForVotes(kind consensus.MessageKind, term consensus.Term, force bool) {
	c := e.configs.Config()
	ask := func(id consensus.MemberID) {
		if id == e.opts.ID {
			return
		}
		m := consensus.Message{Kind: kind, To: id, Term: term, Last: e.log.LastPosition(), Force: force}
		e.attachCommit(&m)
		e.out.send(m, kind == consensus.MsgVote)
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

// attachCommit puts into a vote, or its answer, how far this member knows the log to be committed, and the term there.
// A candidate that knows less so learns which configuration is in force before it counts (etcd issue 12359).
func (e *election) attachCommit(m *consensus.Message) {
	if term, ok := e.log.Term(e.log.Commit()); ok {
		m.Committed = consensus.Position{Index: e.log.Commit(), Term: term}
	}
}

// startTally begins to count votes, with this member's own.
func (e *election) startTally() {
	e.votes.Reset()
	e.votes.Grant(e.opts.ID)
	e.logBehind = false
}

// keepPromise notes, at the start, what was promised before, and what is promised from now on.
func (e *election) keepPromise(hard *consensus.HardState) {
	e.hard.savedPromise = hard.Promise
	e.hard.promise = max(e.opts.promise(), hard.Promise)
	if hard.Term > 0 {
		// When the leader was heard last is forgotten. One tick more: the first may come at once.
		e.patientUntil = (e.hard.promise+e.opts.tickMicros()-1)/e.opts.tickMicros() + 1
		if e.hard.promise == 0 {
			e.patientUntil = 0
		}
	}
}

// endPromise drops a longer promise of an earlier life once no leader can rely on it any more.
func (e *election) endPromise() {
	if e.clock.now >= e.patientUntil {
		e.hard.promise = e.opts.promise()
	}
}

// promised reports whether a leader may still have a lease that depends on a promise of this member: it helps to elect nobody
// meanwhile, itself included. Only a vote that a leader asked for ends it early.
func (e *election) promised() bool { return e.clock.now < e.patientUntil }

// delayCampaign sets the wait of a cordoned member anew if it was drawn before the member was cordoned.
func (e *election) delayCampaign() {
	if e.soft.role != Leader && e.cordon.Self() {
		e.resetCampaign()
	}
}

// random is a small generator (splitmix64): enough to spread timeouts, and the same on every machine for one seed.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// between returns a number in lo..hi, both included.
func (r *random) between(lo, hi int) int {
	if hi <= lo {
		return lo
	}
	return lo + int(r.next()%uint64(hi-lo+1))
}
