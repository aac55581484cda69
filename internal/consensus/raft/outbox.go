package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// maxHeld bounds the messages that wait for a term to be durable: far more than come while a disk works.
const maxHeld = 4096

// take returns the Output so far, and begins the next one.
func (o *outbox) take() Output {
	out := o.Output
	o.lastSends = len(out.Send)
	o.Output = Output{}
	return out
}

// send completes a message and puts it with those that leave at once, or with those that wait for the disk.
func (r *Replica) send(m consensus.Message, after bool) {
	m = r.complete(m)
	if after {
		r.out.SendAfter = append(r.out.SendAfter, m)
		return
	}
	r.out.sendNow(m)
}

// complete sets the fields that every message carries.
func (r *Replica) complete(m consensus.Message) consensus.Message {
	m.From = r.opts.ID
	if m.Term == 0 {
		m.Term = r.hard.term
	}
	if m.Config == (consensus.ConfigID{}) {
		m.Config = r.configs.ID()
	}
	return m
}

func (o *outbox) sendNow(m consensus.Message) {
	if o.Send == nil && o.lastSends > 0 {
		o.Send = make([]consensus.Message, 0, o.lastSends)
	}
	o.Send = append(o.Send, m)
}

// sendInTerm lets messages overtake the own disk, but never the term (Raft thesis, section 10.2.1): a leader that forgot its
// term could lead it again with other entries. The messages leave in the order in which they were sent, whether they wait or
// not: a leader takes a message that arrives out of order for lost. While the disk hangs, messages beyond maxHeld are dropped.
func (r *Replica) sendInTerm(m consensus.Message) {
	if r.hard.pending() {
		if len(r.out.held) >= maxHeld {
			return
		}
		r.out.held = append(r.out.held, heldMessage{r.complete(m), r.hard.termRequest()})
		return
	}
	r.send(m, false)
}

// releaseHeld sends the messages whose term is durable.
func (r *Replica) releaseHeld() {
	count := 0
	for count < len(r.out.held) && r.out.held[count].seq <= r.hard.doneSeq {
		r.out.sendNow(r.out.held[count].message)
		count++
	}
	if r.out.held = slices.Delete(r.out.held, 0, count); len(r.out.held) == 0 {
		r.out.held = nil
	}
}

func (o *outbox) event(e Event) { o.Events = append(o.Events, e) }

func (r *Replica) refuseAll(proposals []consensus.Proposal, to consensus.MemberID, reason consensus.RefusalReason) {
	for i := range proposals {
		r.refuse(proposals[i].ID, to, reason)
	}
}

func (r *Replica) refuse(id consensus.ProposalID, to consensus.MemberID, reason consensus.RefusalReason) {
	refusal := consensus.Refusal{ID: id, Reason: reason, Config: r.configs.ID()}
	if to == r.opts.ID {
		r.out.Refusals = append(r.out.Refusals, refusal)
		return
	}
	r.out.refusing = append(r.out.refusing, addressedRefusal{to, refusal})
}

// flushRefusals sends the refusals of this Step, those in a row to one member in one message.
func (r *Replica) flushRefusals() {
	for i := 0; i < len(r.out.refusing); {
		m := consensus.Message{Kind: consensus.MsgProposeReply, To: r.out.refusing[i].to}
		for ; i < len(r.out.refusing) && r.out.refusing[i].to == m.To; i++ {
			m.Refusals = append(m.Refusals, r.out.refusing[i].refusal)
		}
		r.send(m, false)
	}
	r.out.refusing = r.out.refusing[:0]
}

// refuseFast tells a proposer that the leader did not take its proposal on the fast path.
func (r *Replica) refuseFast(id consensus.ProposalID, to consensus.MemberID, why consensus.Refused) {
	verdict := consensus.Verdict{Attempt: consensus.Attempt{Proposal: id}, Refusal: why}
	r.out.verdicts = append(r.out.verdicts, addressedVerdict{to, verdict})
}

// flushVerdicts sends the verdicts of this Step, those in a row to one member in one message.
func (r *Replica) flushVerdicts() {
	for i := 0; i < len(r.out.verdicts); {
		m := consensus.Message{Kind: consensus.MsgFast, To: r.out.verdicts[i].to}
		for ; i < len(r.out.verdicts) && r.out.verdicts[i].to == m.To; i++ {
			m.Verdicts = append(m.Verdicts, r.out.verdicts[i].verdict)
		}
		r.sendInTerm(m)
	}
	r.out.verdicts = r.out.verdicts[:0]
}
