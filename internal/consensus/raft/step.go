package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/progress"
)

// Step consumes all inputs and returns what must be done now. Give it all inputs that wait: appends, notices and
// acknowledgements are built once, at the end, so that work is batched wherever a queue forms.
func (r *Replica) Step(inputs ...Input) Output {
	for _, input := range inputs {
		r.take(input)
	}
	r.electAlone()
	r.finish()
	r.checkLaws()
	out := r.out
	r.lastSends = len(out.Send)
	r.out = Output{}
	return out
}

func (r *Replica) take(input Input) {
	switch in := input.(type) {
	case Tick:
		r.tick()
	case Receive:
		r.receive(&in.Message)
	case Propose:
		if in.Fast {
			r.proposeFast(in.Proposals)
		} else {
			r.propose(in.Proposals)
		}
	case Read:
		r.read(in.IDs, in.Spread)
	case ChangeConfig:
		p := in.Proposal
		p.Kind = consensus.EntryConfig
		r.propose([]consensus.Proposal{p})
	case Persisted:
		r.persisted(in.Seq)
	case Applied:
		r.applied(in.Index, in.Revision)
	case SnapshotInstalled:
		r.snapshotInstalled(&in)
	case SnapshotSent:
		r.snapshotSent(&in)
	case Unreachable:
		r.unreachable(in.Member)
	case Transfer:
		r.transfer(in.To)
	case Spare:
		r.cordon.spared = slices.Clone(in.Members)
		r.delayCampaign()
	case Compact:
		r.compact(in.Index)
	case Campaign:
		r.campaign()
	}
}

func (r *Replica) tick() {
	r.now++
	r.endPromise()
	r.askForOrphans()
	if r.role == Leader {
		r.tickLeader()
		return
	}
	if r.now >= r.campaignAt {
		r.campaign()
	}
}

func (r *Replica) tickLeader() {
	if r.opts.CheckQuorum && !r.quorumHeard() {
		r.event(QuorumLost{Term: r.term})
		r.becomeFollower(r.term, consensus.NoMember)
		return
	}
	if r.diskStalls() {
		r.event(DiskStalled{Term: r.term})
		r.handOverLeadership()
		return
	}
	if r.applyStalls() {
		r.event(ApplyStalled{Term: r.term})
		r.handOverLeadership()
		return
	}
	r.abortStuck()
	if r.transferee != consensus.NoMember && r.now >= r.transferBy {
		r.abortTransfer()
	}
	r.yieldLeadership()
	if r.now >= r.beatAt {
		r.beat()
	}
}

// diskStalls reports whether this leader's disk hangs while those of a quorum do not. Such a leader can commit by the
// others', but neither apply nor renew leases, and what waits for its disk would grow without bound.
func (r *Replica) diskStalls() bool {
	since, writing := r.log.WritingSince()
	return writing && r.now-since >= uint64(r.opts.ElectionTicks) && r.log.Durable() < r.log.Commit()
}

// applyStalls reports whether this leader has as much to apply as it may keep, and gets no further with it: it could refuse
// proposals for ever.
func (r *Replica) applyStalls() bool {
	since, applying := r.log.ApplyingSince()
	return r.log.Full() && applying && r.now-since >= stallElections*uint64(r.opts.ElectionTicks) && r.bestVoter() != nil
}

// stallElections is how many election timeouts a leader may take to apply one batch while it has too much to apply.
const stallElections = 3

// electAlone spares the only voter the wait; but not one that was promised to a leader which has not heard yet that this
// member alone decides. That leader resigns when it hears, so whoever knows that the configuration has committed is free.
func (r *Replica) electAlone() {
	c := r.configs.Config()
	if r.role == Leader || c.IsJoint() || len(c.Voters) != 1 || c.Voters[0] != r.opts.ID || !r.mayCampaign() {
		return
	}
	if r.leader == consensus.NoMember && (!r.promised() || r.configs.Committed(r.configs.InForce())) {
		r.becomeCandidate(false)
	}
}

func (r *Replica) unreachable(member consensus.MemberID) {
	if r.role != Leader {
		r.suspectLeader(member)
		return
	}
	if p := r.peer(member); p != nil {
		p.Broken = true
		if p.State == progress.Replicate {
			p.BecomeProbe() // what was on its way is probably lost
		}
	}
}

func (r *Replica) persisted(seq uint64) {
	r.doneSeq = max(r.doneSeq, seq)
	r.log.Persisted(seq)
	r.countOwn()
}

// applied notes how far the state machine is, and its revision there. A change by protocol apply is in force from there on.
func (r *Replica) applied(index consensus.Index, revision uint64) {
	if from := r.log.Applied() + 1; index >= from && index <= r.log.Handed() {
		r.log.ApplyTo(index, r.now)
		r.configs.ApplyTo(index)
		r.fast.revision = max(r.fast.revision, revision)
		r.forgetApplied(from, index)
		r.unclaimApplied()
	}
	if r.configs.Len() > 1 {
		r.reviseConfig()
	}
	r.answerCall()
}

// termPending reports whether the current term is not durable yet: nothing that speaks for it may leave before.
func (r *Replica) termPending() bool {
	return r.term != r.hardTerm || r.hardSeq > r.doneSeq
}

// receive sorts messages by term first (Raft paper, figure 2, "rules for all servers"), after judge dropped what no sound
// member sends (validate.go).
func (r *Replica) receive(m *consensus.Message) {
	own := m.From == r.opts.ID && m.Kind != consensus.MsgRecord // this member is a witness of its own proposals, too
	if own || m.From == consensus.NoMember || (m.To != r.opts.ID && m.To != consensus.NoMember) {
		return
	}
	if m.Kind != consensus.MsgRemoved && r.configs.IsTombstone(m.From) && !r.takesLeaveOf(m) {
		r.send(consensus.Message{Kind: consensus.MsgRemoved, To: m.From}, r.termPending())
		// A removed leader may still have to commit its own removal: its entries are heard. Not those of the past, nor by
		// another leader: after a recovery from quorum loss the removed may hold what was never part of this history, and
		// an answer would let them count this member, or learn its term.
		if !fromLeader(m.Kind) || m.Term < r.term || r.role == Leader {
			return
		}
	}
	if r.judge(m) {
		return
	}
	switch m.Kind {
	case consensus.MsgPropose, consensus.MsgProposeReply, consensus.MsgRead, consensus.MsgReadReply,
		consensus.MsgTransfer, consensus.MsgRemoved, consensus.MsgLogQuery, consensus.MsgLogQueryReply,
		consensus.MsgRecord, consensus.MsgRecorded, consensus.MsgFastPropose, consensus.MsgFast, consensus.MsgOrphans:
		if !fromClient(m) {
			r.heardPeer(m)
		}
		r.receiveTermless(m)
		return
	case consensus.MsgPreVote:
		r.handlePreVote(m)
		return
	case consensus.MsgVote:
		if r.mustIgnore(m) {
			return
		}
	}
	if m.Term < r.term {
		r.receiveStale(m)
		return
	}
	if m.Term > r.term && !(m.Kind == consensus.MsgPreVoteReply && !m.Reject) {
		leader := consensus.NoMember
		if fromLeader(m.Kind) {
			leader = m.From
		}
		r.becomeFollower(m.Term, leader)
	}
	r.receiveCurrent(m)
}

// fromClient reports whether m is from a native client, whatever name it bears: members propose what clients named on the
// slow path only. It is no sign of life of any member.
func fromClient(m *consensus.Message) bool {
	fast := m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
	return fast && len(m.Proposals) > 0 && m.Proposals[0].ID.Session.OfClient()
}

// mustIgnore reports whether a vote is asked for while a leader seems alive.
func (r *Replica) mustIgnore(vote *consensus.Message) bool {
	switch {
	case vote.Force && vote.Term > r.term:
		r.patientUntil = 0 // the leader of the term before asked for it, and trusts no lease any more
		return false
	case vote.Term > r.term:
		return r.hearsLeader()
	}
	return vote.Term == r.term && !vote.Force && r.promised()
}

// takesLeaveOf reports whether m is from a removed member that this leader still feeds, and about what it is fed, or what
// its clients asked it for just before.
func (r *Replica) takesLeaveOf(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply, consensus.MsgPropose,
		consensus.MsgFastPropose, consensus.MsgRead:
		return r.role == Leader && r.peer(m.From) != nil
	}
	return false
}

// fromLeader reports whether only the leader of its term sends this kind.
func fromLeader(kind consensus.MessageKind) bool {
	switch kind {
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer, consensus.MsgTimeoutNow:
		return true
	}
	return false
}

// receiveStale answers where the sender is stuck without: a deposed leader, or a candidate, learns the term.
func (r *Replica) receiveStale(m *consensus.Message) {
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer:
		r.send(consensus.Message{Kind: consensus.MsgAppendReply, To: m.From, Refused: m.Prev, Reject: true}, r.termPending())
	case consensus.MsgVote:
		r.send(consensus.Message{Kind: consensus.MsgVoteReply, To: m.From, Reject: true}, r.termPending())
	}
}

func (r *Replica) receiveTermless(m *consensus.Message) {
	switch m.Kind {
	case consensus.MsgPropose:
		r.handlePropose(m)
	case consensus.MsgProposeReply:
		r.handleRefusals(m)
	case consensus.MsgRead:
		r.handleRead(m)
	case consensus.MsgReadReply:
		r.handleReadReply(m)
	case consensus.MsgLogQuery:
		r.handleLogQuery(m)
	case consensus.MsgLogQueryReply:
		r.handleLogQueryReply(m)
	case consensus.MsgRecord:
		r.handleRecord(m)
	case consensus.MsgRecorded:
		r.handleRecorded(m)
	case consensus.MsgFastPropose:
		r.handleFastPropose(m)
	case consensus.MsgFast:
		r.handleFast(m)
	case consensus.MsgOrphans:
		r.handleOrphans(m)
	case consensus.MsgTransfer:
		if r.role == Leader {
			r.transfer(m.Target)
		}
	case consensus.MsgRemoved:
		r.handleRemoved(m)
	}
}

// receiveCurrent handles messages of the current term (and granted pre-votes for the next).
func (r *Replica) receiveCurrent(m *consensus.Message) {
	if fromLeader(m.Kind) {
		if r.role == Leader {
			return // no sound member sends that: judge refused it
		}
		if r.role != Follower || r.leader != m.From {
			r.becomeFollower(m.Term, m.From)
		}
		r.hearLeader()
	}
	switch m.Kind {
	case consensus.MsgPreVoteReply, consensus.MsgVoteReply:
		r.heardPeer(m)
		r.handleVoteReply(m)
	case consensus.MsgVote:
		r.handleVote(m)
	case consensus.MsgAppend:
		r.handleAppend(m)
	case consensus.MsgHeartbeat:
		r.handleHeartbeat(m)
	case consensus.MsgSnapshotOffer:
		r.handleSnapshotOffer(m)
	case consensus.MsgTimeoutNow:
		r.handleTimeoutNow(m.Force)
	case consensus.MsgHolds:
		r.hold(m.From, m.Match.Index)
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply:
		if p := r.heardPeer(m); p != nil {
			r.handleReply(p, m)
		}
	}
}

// heardPeer notes, on a leader, a sign of life.
func (r *Replica) heardPeer(m *consensus.Message) *progress.Peer {
	if r.role != Leader {
		return nil
	}
	p := r.peer(m.From)
	if p != nil && p.Denied {
		return nil
	}
	if p != nil {
		p.Heard, p.HeardAt, p.Broken = true, r.now, false
	}
	return p
}

// send completes a message and puts it with those that may leave at once, or with those that wait for the disk.
func (r *Replica) send(m consensus.Message, after bool) {
	m.From = r.opts.ID
	if m.Term == 0 {
		m.Term = r.term
	}
	if m.Config == (consensus.ConfigID{}) {
		m.Config = r.configs.ID()
	}
	if after {
		r.out.SendAfter = append(r.out.SendAfter, m)
		return
	}
	if r.out.Send == nil && r.lastSends > 0 {
		r.out.Send = make([]consensus.Message, 0, r.lastSends)
	}
	r.out.Send = append(r.out.Send, m)
}

func (r *Replica) event(e Event) { r.out.Events = append(r.out.Events, e) }

// finish builds what leaves once per Step.
func (r *Replica) finish() {
	if r.role == Leader {
		r.advanceCommit()
		r.finishChange()
		r.answerReads()
		r.advanceTransfer()
		for _, p := range r.peers {
			r.replicate(p)
		}
		r.forgetLeavers()
		if r.mustHandOver() {
			r.handOverLeadership()
		}
	}
	r.inferCommit()
	r.readFromMajority()
	r.flushForwards()
	r.flushFast()
	r.flushVerdicts()
	r.flushRefusals()
	r.persist()
	r.stampOwn()
	r.acknowledge()
	r.handOut()
	r.roundOpen = false
}

// persist makes one request of all that must reach the disk.
func (r *Replica) persist() {
	reset := r.resetMeta
	hard := r.term != r.hardTerm || r.vote != r.hardVote || r.promise != r.hardPromise
	entries := r.log.Unsent()
	if !hard && !entries && reset == nil && !r.fast.due {
		return
	}
	r.seq++
	r.out.Seq, r.out.Reset, r.resetMeta = r.seq, reset, nil
	r.out.Records, r.fast.changes, r.fast.due = r.fast.changes, nil, false
	// The commit index rides along with what is written anyway.
	if hard || (entries && r.log.Commit() != r.hardHint) || reset != nil {
		if r.term != r.hardTerm {
			r.hardSeq = r.seq
		}
		if r.promise != r.hardPromise {
			r.hardPromise, r.promiseSeq = r.promise, r.seq
		}
		r.hardTerm, r.hardVote, r.hardHint = r.term, r.vote, r.log.Commit()
		r.out.Hard = &consensus.HardState{Term: r.term, Vote: r.vote, Commit: r.log.Commit(), Promise: r.promise}
	}
	r.out.Entries = r.log.Write(r.seq, r.now)
}

// handOut gives the state machine what is committed and durable here.
func (r *Replica) handOut() {
	if !r.log.Writing() && len(r.out.SendAfter) > 0 {
		// Nothing is under way to wait for.
		r.out.Send = append(r.out.Send, r.out.SendAfter...)
		r.out.SendAfter = nil
	}
	if r.installing == nil {
		r.out.Apply = r.log.HandOut(r.opts.MaxApplyingBytes, r.now)
	}
}
