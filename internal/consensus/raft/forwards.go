package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/filter"
)

// forwardProposals adds proposals for the leader.
func (r *Replica) forwardProposals(proposals []consensus.Proposal) {
	if r.forwards.box.proposals == nil {
		r.forwards.box.proposals = proposals[:len(proposals):len(proposals)]
		return
	}
	r.forwards.box.proposals = append(r.forwards.box.proposals, proposals...)
}

// forwardOffers adds proposals for the leader and, as records, for all other voters.
func (r *Replica) forwardOffers(proposals []consensus.Proposal) {
	r.forwards.offered = append(r.forwards.offered, proposals...)
}

// forwardReads adds reads; with spread, the other voters are asked, too.
func (r *Replica) forwardReads(ids []uint64, spread bool) {
	r.forwards.box.spread = r.forwards.box.spread || spread
	for _, id := range ids {
		r.forwards.box.reads = append(r.forwards.box.reads, consensus.ReadIndex{ID: id})
	}
}

// forwardTransfer asks the leader to transfer leadership.
func (r *Replica) forwardTransfer(to consensus.MemberID) {
	r.forwards.box.transfer, r.forwards.box.asks = to, true
}

// flushForwards sends the requests for the leader; leadership may have moved within the Step.
func (r *Replica) flushForwards() {
	box := r.forwards.box
	r.forwards.box = forwardBox{}
	if r.leader == consensus.NoMember || r.leader == r.opts.ID {
		r.refuseAll(box.proposals, r.opts.ID, consensus.ReasonNoLeader)
		for _, read := range box.reads {
			r.out.FailedReads = append(r.out.FailedReads, read.ID)
		}
		return
	}
	for rest := box.proposals; len(rest) > 0; {
		n := consensus.Fitting(rest, r.opts.MaxMessageBytes)
		r.send(consensus.Message{
			Kind: consensus.MsgPropose, To: r.leader, Config: r.boundTo, Proposals: rest[:n:n],
		}, false)
		rest = rest[n:]
	}
	if len(box.reads) > 0 {
		m := consensus.Message{Kind: consensus.MsgRead, To: r.leader, Reads: box.reads}
		if box.spread {
			m.Query = r.askVoters(box.reads)
		}
		r.send(m, false)
		for _, read := range box.reads {
			r.forwards.forwarded = append(r.forwards.forwarded, read.ID)
		}
	}
	if box.asks {
		r.send(consensus.Message{Kind: consensus.MsgTransfer, To: r.leader, Target: box.transfer}, false)
	}
}

// flushOffers sends the offers of this Step; leadership may have moved within it.
func (r *Replica) flushOffers() {
	rest := r.forwards.offered
	r.forwards.offered = nil
	if len(rest) > 0 && (r.leader == consensus.NoMember || r.leader == r.opts.ID) {
		r.refuseAll(rest, r.opts.ID, consensus.ReasonNoLeader)
		return
	}
	for len(rest) > 0 {
		n := consensus.Fitting(rest, r.opts.MaxMessageBytes)
		batch := rest[:n:n]
		rest = rest[n:]
		r.send(consensus.Message{Kind: consensus.MsgFastPropose, To: r.leader, Proposals: batch}, false)
		for _, id := range r.configs.Config().Voters {
			if id != r.leader {
				r.send(consensus.Message{Kind: consensus.MsgRecord, To: id, Proposals: batch}, false)
			}
		}
	}
}

// handleRefusals reports refusals to the proposers, and binds the proposals to come to the configuration that the leader named,
// unless this member's log has it by now: the shell may propose again those that were refused for that reason alone.
func (r *Replica) handleRefusals(m *consensus.Message) {
	for i := range m.Refusals {
		if m.Refusals[i].Reason != consensus.ReasonStaleConfig || m.From != r.leader {
			continue
		}
		if r.boundTo = m.Refusals[i].Config; r.boundTo == r.configs.ID() {
			r.boundTo = consensus.ConfigID{}
		}
	}
	r.out.Refusals = append(r.out.Refusals, m.Refusals...)
}

// handleReadReply reports the leader's answers to forwarded reads; a read that was given up meanwhile gets no second answer.
func (r *Replica) handleReadReply(m *consensus.Message) {
	if m.From != r.leader {
		r.stats.dropped.Count(filter.ReadAnswer) // reads that another leader was asked for were given up with it
		return
	}
	for _, answer := range m.Reads {
		at := slices.Index(r.forwards.forwarded, answer.ID)
		if at < 0 {
			continue
		}
		r.forwards.forwarded = slices.Delete(r.forwards.forwarded, at, at+1)
		if m.Reject {
			r.out.FailedReads = append(r.out.FailedReads, answer.ID)
		} else {
			r.out.Reads, r.out.ReadsWaited = append(r.out.Reads, answer), m.Waited
		}
	}
}

// failForwarded gives up the reads that the former leader has not answered.
func (r *Replica) failForwarded() {
	r.out.FailedReads = append(r.out.FailedReads, r.forwards.forwarded...)
	r.forwards.forwarded = r.forwards.forwarded[:0]
}
