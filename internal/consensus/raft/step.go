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
	r.journal.checkLaws()
	return r.out.take()
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
		r.follower.snapshotInstalled(&in)
	case SnapshotSent:
		r.repl.snapshotSent(&in)
	case Unreachable:
		r.unreachable(in.Member)
	case Transfer:
		switch {
		case r.soft.role == Leader:
			r.transfer.begin(in.To)
		case r.soft.leader != consensus.NoMember:
			r.forwards.transfer(in.To)
		}
	case Spare:
		r.cordon.Spared = slices.Clone(in.Members)
		r.elect.delayCampaign()
	case Compact:
		r.repl.compact(in.Index)
	case Campaign:
		r.campaign()
	}
}

func (r *Replica) tick() {
	r.clock.now++
	r.elect.endPromise()
	r.askForOrphans()
	if r.soft.role == Leader {
		r.tickLeader()
		return
	}
	if r.clock.now >= r.elect.campaignAt {
		r.campaign()
	}
}

func (r *Replica) tickLeader() {
	if r.opts.CheckQuorum && !r.peers.quorumHeard() {
		r.out.event(QuorumLost{Term: r.hard.term})
		r.becomeFollower(r.hard.term, consensus.NoMember)
		return
	}
	if r.repl.diskStalls() {
		r.out.event(DiskStalled{Term: r.hard.term})
		r.handOverLeadership()
		return
	}
	if r.repl.applyStalls() {
		r.out.event(ApplyStalled{Term: r.hard.term})
		r.handOverLeadership()
		return
	}
	r.repeats.tick()
	r.changes.abortStuck()
	r.transfer.expire()
	r.transfer.yield()
	if r.clock.now >= r.repl.heartbeatAt {
		r.repl.heartbeat()
	}
}

// electAlone spares the only voter the wait; but not one that was promised to a leader which has not heard yet that this
// member alone decides. That leader resigns when it hears, so whoever knows that the configuration has committed is free.
func (r *Replica) electAlone() {
	c := r.configs.Config()
	if c.IsJoint() || len(c.Voters) != 1 || c.Voters[0] != r.opts.ID || !r.mayCampaign() {
		return
	}
	if r.soft.leader == consensus.NoMember && (!r.elect.promised() || r.configs.Committed(r.configs.InForce())) {
		r.becomeCandidate(false)
	}
}

func (r *Replica) unreachable(member consensus.MemberID) {
	if r.soft.role != Leader {
		r.elect.suspectLeader(member)
		return
	}
	if p := r.peers.find(member); p != nil {
		p.Broken = true
		if p.State == progress.Replicate {
			r.repl.probe(p) // what was on its way may be lost
		}
	}
}

func (r *Replica) persisted(seq uint64) {
	r.hard.doneSeq = max(r.hard.doneSeq, seq)
	r.log.Persisted(seq)
	r.fast.CountOwn(r.hard.doneSeq)
}

// applied notes how far the state machine is, and its revision there. A change by protocol apply is in force from there on.
func (r *Replica) applied(index consensus.Index, revision uint64) {
	if from := r.log.Applied() + 1; index >= from && index <= r.log.Handed() {
		r.log.ApplyTo(index, r.clock.now)
		r.configs.ApplyTo(index)
		r.fast.Applied(from, index, revision, r.clock.now)
	}
	if r.configs.Len() > 1 {
		r.journal.reviseConfig()
	}
	r.campaignIfAsked()
}

// receive sorts messages by term first (Raft paper, figure 2, "rules for all servers"), after judge dropped what no sound
// member sends (validate.go).
func (r *Replica) receive(m *consensus.Message) {
	own := m.From == r.opts.ID && m.Kind != consensus.MsgRecord // this member is a witness of its own proposals, too
	if own || m.From == consensus.NoMember || (m.To != r.opts.ID && m.To != consensus.NoMember) {
		return
	}
	if m.Kind != consensus.MsgRemoved && r.configs.IsTombstone(m.From) && !r.gate.fromLeaving(m) {
		r.out.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: m.From})
		// A removed leader may still have to commit its own removal: its entries are heard. Not those of the past, nor by
		// another leader: after a recovery from quorum loss the removed may have what was never part of this history, and
		// an answer would let them count this member, or learn its term.
		if !m.Kind.FromLeader() || m.Term < r.hard.term || r.soft.role == Leader {
			return
		}
	}
	if r.gate.judge(m) {
		return
	}
	switch m.Kind {
	case consensus.MsgPropose, consensus.MsgProposeReply, consensus.MsgRead, consensus.MsgReadReply,
		consensus.MsgTransfer, consensus.MsgRemoved, consensus.MsgLogQuery, consensus.MsgLogQueryReply,
		consensus.MsgRecord, consensus.MsgRecorded, consensus.MsgFastPropose, consensus.MsgFast, consensus.MsgOrphans:
		if !fromClient(m) {
			r.peers.heard(m)
		}
		r.receiveTermless(m)
		return
	case consensus.MsgPreVote:
		r.handlePreVote(m)
		return
	case consensus.MsgVote:
		if r.gate.mustIgnore(m) {
			return
		}
	}
	if m.Term < r.hard.term {
		r.receiveStale(m)
		return
	}
	if m.Term > r.hard.term && !(m.Kind == consensus.MsgPreVoteReply && !m.Reject) {
		leader := consensus.NoMember
		if m.Kind.FromLeader() {
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

// receiveStale answers where the sender is stuck without: a deposed leader, or a candidate, learns the term.
func (r *Replica) receiveStale(m *consensus.Message) {
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer:
		r.out.sendInTerm(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Mismatch: consensus.Mismatch{Refused: m.Prev},
		})
	case consensus.MsgVote:
		r.out.sendInTerm(consensus.Message{Kind: consensus.MsgVoteReply, To: m.From, Reject: true})
	}
}

func (r *Replica) receiveTermless(m *consensus.Message) {
	switch m.Kind {
	case consensus.MsgPropose:
		r.handlePropose(m)
	case consensus.MsgProposeReply:
		r.forwards.handleRefusals(m)
	case consensus.MsgRead:
		r.handleRead(m)
	case consensus.MsgReadReply:
		r.forwards.handleReadReply(m)
	case consensus.MsgLogQuery:
		r.forwards.handleLogQuery(m)
	case consensus.MsgLogQueryReply:
		r.forwards.handleLogQueryReply(m)
	case consensus.MsgRecord:
		r.handleRecord(m)
	case consensus.MsgRecorded:
		v := r.view()
		r.fast.Recorded(&v, m)
	case consensus.MsgFastPropose:
		r.handleFastPropose(m)
	case consensus.MsgFast:
		v := r.view()
		r.fast.Answered(&v, m)
	case consensus.MsgOrphans:
		r.handleOrphans(m)
	case consensus.MsgTransfer:
		if r.soft.role == Leader {
			r.transfer.begin(m.Target)
		}
	case consensus.MsgRemoved:
		r.handleRemoved(m)
	}
}

// receiveCurrent handles messages of the current term (and granted pre-votes for the next).
func (r *Replica) receiveCurrent(m *consensus.Message) {
	if m.Kind.FromLeader() {
		if r.soft.role == Leader {
			return // no sound member sends that: judge refused it
		}
		if r.soft.role != Follower || r.soft.leader != m.From {
			r.becomeFollower(m.Term, m.From)
		}
		r.elect.hearLeader()
	}
	switch m.Kind {
	case consensus.MsgPreVoteReply, consensus.MsgVoteReply:
		r.peers.heard(m)
		r.handleVoteReply(m)
	case consensus.MsgVote:
		r.handleVote(m)
	case consensus.MsgAppend:
		r.follower.handleAppend(m)
	case consensus.MsgHeartbeat:
		r.follower.handleHeartbeat(m)
	case consensus.MsgSnapshotOffer:
		r.follower.handleSnapshotOffer(m)
	case consensus.MsgTimeoutNow:
		r.handleTimeoutNow(m.Force)
	case consensus.MsgAcknowledged:
		r.infer.note(m.From, m.Match.Index)
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply:
		if p := r.peers.heard(m); p != nil {
			r.repl.handleReply(p, m)
		}
	}
}

// finish builds what leaves once per Step.
func (r *Replica) finish() {
	if r.soft.role == Leader {
		r.repl.advanceCommit()
		r.changes.finish()
		r.reads.answer()
		r.transfer.advance()
		for _, p := range r.peers.list {
			r.repl.replicate(p)
		}
		r.peers.forgetLeavers()
		if r.transfer.mustHandOver() {
			r.handOverLeadership()
		}
	}
	r.infer.commit()
	r.forwards.readFromMajority()
	r.forwards.flush()
	r.forwards.flushFast()
	r.out.flushVerdicts()
	r.out.Evaluate = r.fast.TakeEvaluations()
	r.out.flushRefusals()
	r.persist()
	r.fast.StampOwn(r.hard.seq, r.hard.doneSeq)
	r.out.Decided = r.fast.TakeDecided()
	r.follower.acknowledge()
	r.handOut()
	r.rounds.end()
}

// persist makes one request of all that must reach the disk.
func (r *Replica) persist() {
	reset := r.journal.resetMeta
	entries := r.log.Unsent()
	if !r.hard.changed() && !entries && reset == nil && !r.fast.Due() {
		return
	}
	r.hard.seq++
	r.out.Seq, r.out.Reset, r.journal.resetMeta = r.hard.seq, reset, nil
	r.out.Records = r.fast.TakeChanges()
	// The commit index rides along with what is written anyway.
	if r.hard.changed() || (entries && r.log.Commit() != r.hard.savedCommit) || reset != nil {
		r.out.Hard = r.hard.save(r.log.Commit())
	}
	r.out.Entries = r.log.Write(r.hard.seq, r.clock.now)
}

// handOut gives the state machine what is committed and durable here.
func (r *Replica) handOut() {
	if !r.log.Writing() {
		// Nothing is under way to wait for.
		r.out.Send = append(r.out.Send, r.out.SendAfter...)
		r.out.SendAfter = nil
	}
	if r.follower.installing == nil {
		r.out.Apply = r.log.HandOut(r.opts.MaxApplyingBytes, r.clock.now)
	}
}
