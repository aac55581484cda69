package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// Step consumes all inputs and returns the work for the caller. Pass all inputs that wait: appends, notices and
// acknowledgements are built once, at the end, so that work is batched wherever a queue forms.
func (r *Replica) Step(inputs ...Input) Output {
	for _, input := range inputs {
		r.take(input)
	}
	r.electAlone()
	r.finish()
	r.checkLaws()
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
		r.persisted(in.Seq, in.Took)
		if r.lead != nil {
			r.lead.noteMatch(r.opts.ID, in.Took)
		} else {
			r.noteLog(r.opts.ID, in.Took)
		}
	case Applied:
		r.applied(in.Index, in.Revision)
	case SnapshotInstalled:
		r.snapshotInstalled(&in)
	case SnapshotSent:
		if r.lead != nil {
			r.lead.snapshotSent(&in)
		}
	case Unreachable:
		r.unreachable(in.Member)
	case Transfer:
		switch {
		case r.lead != nil:
			r.lead.beginTransfer(in.To)
		case r.leader != consensus.NoMember:
			r.forwardTransfer(in.To)
		}
	case Spare:
		r.spared = slices.Clone(in.Members)
		r.delayCampaign()
	case Compact:
		r.compact(in.Index)
	case Campaign:
		r.campaign()
	}
}

func (r *Replica) tick() {
	r.clock.now++
	r.endPromise()
	r.askForOrphans()
	if r.lead != nil {
		r.lead.tick()
		return
	}
	if r.clock.now >= r.elect.campaignAt {
		r.campaign()
	}
}

// electAlone lets the only voter campaign at once; but not while its promise binds it to a leader that may not know yet that
// this member alone decides. That leader resigns when it knows; so a member that knows the configuration to be committed is not
// bound.
func (r *Replica) electAlone() {
	c := r.configs.Config()
	if c.IsJoint() || len(c.Voters) != 1 || c.Voters[0] != r.opts.ID || !r.mayCampaign() {
		return
	}
	if r.leader == consensus.NoMember && (!r.promised() || r.configs.Committed(r.configs.InForce())) {
		r.becomeCandidate(false)
	}
}

func (r *Replica) unreachable(member consensus.MemberID) {
	if r.lead != nil {
		r.lead.unreachable(member)
		return
	}
	r.suspectLeader(member)
}

// applied notes up to which index the state machine has applied, and its revision there. A change by protocol apply is in force
// from there on.
func (r *Replica) applied(index consensus.Index, revision uint64) {
	if from := r.log.Applied() + 1; index >= from && index <= r.log.Handed() {
		r.applyTo(index)
		r.fast.Applied(from, index, revision, r.clock.now)
	}
	if r.configs.Len() > 1 {
		r.reviseConfig()
	}
	r.campaignIfAsked()
}

// receive first sorts messages by term (Raft paper, figure 2, "rules for all servers"), after judge dropped those that no
// correct member sends (package filter).
func (r *Replica) receive(m *consensus.Message) {
	own := m.From == r.opts.ID && m.Kind != consensus.MsgRecord // this member is a witness of its own proposals, too
	if own || m.From == consensus.NoMember || (m.To != r.opts.ID && m.To != consensus.NoMember) {
		return
	}
	if m.Kind != consensus.MsgRemoved && r.configs.IsTombstone(m.From) && !r.fromLeaving(m) {
		r.sendInTerm(consensus.Message{Kind: consensus.MsgRemoved, To: m.From})
		// A removed leader may still have to commit its own removal: its entries are taken. A member refuses those of an
		// earlier term, and a leader refuses them all: after a recovery from quorum loss the removed members may have entries
		// that were never part of this history, and an answer would let them count this member, or learn its term.
		if !m.Kind.FromLeader() || m.Term < r.hard.term || r.lead != nil {
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
			r.noteHeard(m.From)
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
		if m.Force && m.Term > r.hard.term {
			r.releasePromise() // the leader of the term before asked for the election, and relies on no lease any more
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

// fromClient reports whether m is from a native client, whatever member it names as its sender: members forward proposals of
// clients on the slow path only. It is no sign of life of any member.
func fromClient(m *consensus.Message) bool {
	fast := m.Kind == consensus.MsgRecord || m.Kind == consensus.MsgFastPropose
	return fast && len(m.Proposals) > 0 && m.Proposals[0].ID.Session.OfClient()
}

// receiveStale answers a message of an earlier term whose sender would be stuck otherwise: a deposed leader, or a candidate,
// learns the term.
func (r *Replica) receiveStale(m *consensus.Message) {
	switch m.Kind {
	case consensus.MsgAppend, consensus.MsgHeartbeat, consensus.MsgSnapshotOffer:
		r.sendInTerm(consensus.Message{
			Kind: consensus.MsgAppendReply, To: m.From, Reject: true, Mismatch: consensus.Mismatch{Refused: m.Prev},
		})
	case consensus.MsgVote:
		r.sendInTerm(consensus.Message{Kind: consensus.MsgVoteReply, To: m.From, Reject: true})
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
		v := r.view()
		r.fast.Recorded(&v, m)
	case consensus.MsgFastPropose:
		r.handleFastPropose(m)
	case consensus.MsgFast:
		v := r.view()
		r.fast.Answered(&v, m)
	case consensus.MsgOrphans:
		if r.lead != nil {
			r.lead.handleOrphans(m)
		}
	case consensus.MsgTransfer:
		if r.lead != nil {
			r.lead.beginTransfer(m.Target)
		}
	case consensus.MsgRemoved:
		r.handleRemoved(m)
	}
}

// receiveCurrent handles messages of the current term (and granted pre-votes for the next one).
func (r *Replica) receiveCurrent(m *consensus.Message) {
	if m.Kind.FromLeader() {
		if r.lead != nil {
			return // no correct member sends that: judge dropped it
		}
		if r.role != Follower || r.leader != m.From {
			r.becomeFollower(m.Term, m.From)
		}
		r.hearLeader()
	}
	switch m.Kind {
	case consensus.MsgPreVoteReply, consensus.MsgVoteReply:
		r.noteHeard(m.From)
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
	case consensus.MsgAcknowledged:
		r.noteDurable(m.From, m.Match.Index, m.DiskTook)
	case consensus.MsgAppendReply, consensus.MsgHeartbeatReply, consensus.MsgSnapshotReply:
		if p := r.noteHeard(m.From); p != nil {
			r.lead.handleReply(p, m)
		}
	}
}

// finish builds the messages that leave once per Step.
func (r *Replica) finish() {
	if r.lead != nil {
		r.lead.finish()
	}
	r.inferCommit()
	r.readFromMajority()
	r.forwards.answeredBy = consensus.NoMember
	r.flushForwards()
	r.flushOffers()
	r.flushVerdicts()
	r.out.Evaluate = r.fast.TakeEvaluations()
	r.flushRefusals()
	r.persist()
	r.fast.StampOwn(r.hard.seq, r.hard.doneSeq)
	r.out.Decided = r.fast.TakeDecided()
	r.acknowledge()
	r.handOut()
	r.out.Ready = min(r.log.Commit(), r.log.Durable())
}
