package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/proposer"
)

// ownRecord is what this member holds of its own proposals, once a persist request is durable.
type ownRecord struct {
	seq     uint64
	attempt consensus.Attempt
}

// proposeFast sends proposals to the leader and to all other voters at once, or, where the fast path is closed, to the
// leader alone.
func (r *Replica) proposeFast(proposals []consensus.Proposal) {
	if !r.opensFast() || r.soft.role != Follower || r.soft.leader == consensus.NoMember ||
		r.soft.boundTo != (consensus.ConfigID{}) || !r.configs.Stable() {
		r.propose(proposals)
		return
	}
	if r.fast.tally.Len() > maxUnapplied {
		r.resetTally() // of what was lost on all ways nobody is told; those under way go the slow way
	}
	for i := range proposals {
		r.fast.tally.Open(proposals[i].ID)
	}
	r.fast.counts.Tried += uint64(len(proposals))
	r.fast.records = append(r.fast.records, proposals...)
}

// flushFast sends what proposeFast gathered in this Step; leadership may have moved within it.
func (r *Replica) flushFast() {
	rest := r.fast.records
	r.fast.records = nil
	if len(rest) > 0 && (r.soft.leader == consensus.NoMember || r.soft.leader == r.opts.ID) {
		r.out.refuseAll(rest, r.opts.ID, consensus.ReasonNoLeader)
		return
	}
	for len(rest) > 0 {
		n := fitting(rest, r.opts.MaxMessageBytes)
		batch := rest[:n:n]
		rest = rest[n:]
		r.out.send(consensus.Message{Kind: consensus.MsgFastPropose, To: r.soft.leader, Proposals: batch}, false)
		for _, id := range r.configs.Config().Voters {
			if id != r.soft.leader {
				r.out.send(consensus.Message{Kind: consensus.MsgRecord, To: id, Proposals: batch}, false)
			}
		}
	}
}

// recordOwn is what a voter does with its own proposals: it is one of those that hold them.
func (r *Replica) recordOwn(m *consensus.Message) {
	for i := range m.Proposals {
		verdict := r.record(&m.Proposals[i], m.Term, m.Config)
		if verdict.Refusal != consensus.RefusedNot {
			r.fast.counts.Refused[verdict.Refusal]++
			continue
		}
		r.fast.own = append(r.fast.own, ownRecord{attempt: verdict.Attempt})
	}
}

// stampOwn notes which persist request, the last one, makes the own records of this Step durable.
func (r *Replica) stampOwn() {
	own := r.fast.own
	for i := len(own) - 1; i >= 0 && own[i].seq == 0; i-- {
		own[i].seq = r.hard.seq
	}
	r.countOwn()
}

// countOwn counts the own records that are durable.
func (r *Replica) countOwn() {
	f := &r.fast
	n := 0
	for n < len(f.own) && f.own[n].seq != 0 && (f.own[n].seq <= r.hard.doneSeq || r.opts.Faults.Fast.RecordTooSoon) {
		r.win(f.tally.Accepted(r.opts.ID, f.own[n].attempt))
		n++
	}
	f.own = append(f.own[:0], f.own[n:]...)
}

// handleRecorded counts what a voter holds. Only what was said in this term and under this configuration counts.
func (r *Replica) handleRecorded(m *consensus.Message) {
	if !r.current(m) {
		return
	}
	for i := range m.Verdicts {
		if v := &m.Verdicts[i]; v.Refusal != consensus.RefusedNot {
			r.noteRefused(v.Refusal)
		} else {
			r.win(r.fast.tally.Accepted(m.From, v.Attempt))
		}
	}
}

// handleFast counts the leader's answers. One that goes the slow way will not be decided otherwise.
func (r *Replica) handleFast(m *consensus.Message) {
	if !r.current(m) || (m.From != r.soft.leader && !r.opts.Faults.Fast.MixAnswers) {
		return
	}
	for i := range m.Verdicts {
		if v := &m.Verdicts[i]; v.Refusal != consensus.RefusedNot {
			r.noteRefused(v.Refusal)
			r.fast.tally.Close(v.Proposal)
		} else {
			r.win(r.fast.tally.Answered(m.From, *v))
		}
	}
}

func (r *Replica) current(m *consensus.Message) bool {
	return m.Term == r.hard.term && m.Config == r.configs.ID() || r.opts.Faults.Fast.MixAnswers
}

func (r *Replica) noteRefused(why consensus.Refused) {
	if int(why) < len(r.fast.counts.Refused) {
		r.fast.counts.Refused[why]++
	}
}

// win hands a decided proposal to the shell.
func (r *Replica) win(w proposer.Win, won bool) {
	if won {
		r.fast.counts.Won++
		w.Config = r.configs.ID()
		r.out.Wins = append(r.out.Wins, w)
	}
}
