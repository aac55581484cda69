package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/configs"
)

// outbox gathers the Output of a Step. It puts into messages what all of them carry.
type outbox struct {
	Output
	opts    *Options
	hard    *hardState
	configs *configs.History

	refusing  []addressedRefusal
	verdicts  []addressedVerdict // of the leader, on the fast path
	lastSends int                // capacity that the next Output.Send will likely need
}

// addressedRefusal is a refusal on its way to the member that forwarded the proposal.
type addressedRefusal struct {
	to      consensus.MemberID
	refusal consensus.Refusal
}

// addressedVerdict is a verdict on its way to a proposer.
type addressedVerdict struct {
	to      consensus.MemberID
	verdict consensus.Verdict
}

// take returns what was gathered, and begins the next Output.
func (o *outbox) take() Output {
	out := o.Output
	o.lastSends = len(out.Send)
	o.Output = Output{}
	return out
}

// send completes a message and puts it with those that may leave at once, or with those that wait for the disk.
func (o *outbox) send(m consensus.Message, after bool) {
	m.From = o.opts.ID
	if m.Term == 0 {
		m.Term = o.hard.term
	}
	if m.Config == (consensus.ConfigID{}) {
		m.Config = o.configs.ID()
	}
	if after {
		o.SendAfter = append(o.SendAfter, m)
		return
	}
	if o.Send == nil && o.lastSends > 0 {
		o.Send = make([]consensus.Message, 0, o.lastSends)
	}
	o.Send = append(o.Send, m)
}

// sendInTerm lets messages overtake the own disk, but never the term (Raft thesis, section 10.2.1): a leader that forgot its
// term could lead it again with other entries.
func (o *outbox) sendInTerm(m consensus.Message) { o.send(m, o.hard.pending()) }

func (o *outbox) event(e Event) { o.Events = append(o.Events, e) }

func (o *outbox) refuseAll(proposals []consensus.Proposal, to consensus.MemberID, reason consensus.RefusalReason) {
	for i := range proposals {
		o.refuse(proposals[i].ID, to, reason)
	}
}

func (o *outbox) refuse(id consensus.ProposalID, to consensus.MemberID, reason consensus.RefusalReason) {
	refusal := consensus.Refusal{ID: id, Reason: reason, Config: o.configs.ID()}
	if to == o.opts.ID {
		o.Refusals = append(o.Refusals, refusal)
		return
	}
	o.refusing = append(o.refusing, addressedRefusal{to, refusal})
}

// flushRefusals sends the refusals of this Step, those in a row to one member in one message.
func (o *outbox) flushRefusals() {
	for i := 0; i < len(o.refusing); {
		m := consensus.Message{Kind: consensus.MsgProposeReply, To: o.refusing[i].to}
		for ; i < len(o.refusing) && o.refusing[i].to == m.To; i++ {
			m.Refusals = append(m.Refusals, o.refusing[i].refusal)
		}
		o.send(m, false)
	}
	o.refusing = o.refusing[:0]
}

// refuseFast lets a proposer know that the leader did not take a proposal the fast way.
func (o *outbox) refuseFast(id consensus.ProposalID, to consensus.MemberID, why consensus.Refused) {
	verdict := consensus.Verdict{Attempt: consensus.Attempt{Proposal: id}, Refusal: why}
	o.verdicts = append(o.verdicts, addressedVerdict{to, verdict})
}

// flushVerdicts sends the verdicts of this Step, those in a row to one member in one message.
func (o *outbox) flushVerdicts() {
	for i := 0; i < len(o.verdicts); {
		m := consensus.Message{Kind: consensus.MsgFast, To: o.verdicts[i].to}
		for ; i < len(o.verdicts) && o.verdicts[i].to == m.To; i++ {
			m.Verdicts = append(m.Verdicts, o.verdicts[i].verdict)
		}
		o.sendInTerm(m)
	}
	o.verdicts = o.verdicts[:0]
}
