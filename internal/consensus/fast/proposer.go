package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// ownRecord is a record of this member's own proposal; it counts once the persist request seq is durable.
type ownRecord struct {
	seq     uint64
	attempt consensus.Attempt
}

// ResetTally starts the tally of this term and of the configuration in force: answers given under others never count.
func (f *Path) ResetTally() {
	if f.tally.Len() == 0 || !f.dropped[rules.ProposerMixes] {
		f.tally.Reset(f.configs.Config().Voters)
		f.own = f.own[:0]
	}
	f.tally.Rules = tally.Without(f.dropped)
}

// Propose begins to count the answers to this member's own proposals.
func (f *Path) Propose(proposals []consensus.Proposal) {
	if f.tally.Len() > maxUnapplied {
		f.ResetTally() // proposals of which all answers were lost never end; those under way take the slow path
	}
	for i := range proposals {
		f.tally.Open(proposals[i].ID)
	}
	f.counts.Tried += uint64(len(proposals))
}

// RecordOwn records this member's own proposals, as every voter does: its own record counts, too.
func (f *Path) RecordOwn(v *View, m *consensus.Message) {
	for i := range m.Proposals {
		verdict := f.record(v, &m.Proposals[i], m.Term, m.Config)
		if verdict.Refusal != consensus.RefusedNot {
			f.counts.Refused[verdict.Refusal]++
			continue
		}
		f.own = append(f.own, ownRecord{attempt: verdict.Attempt})
	}
}

// StampOwn notes that the persist request seq, the last one, makes the own records of this Step durable.
func (f *Path) StampOwn(seq, durable uint64) {
	for i := len(f.own) - 1; i >= 0 && f.own[i].seq == 0; i-- {
		f.own[i].seq = seq
	}
	f.CountOwn(durable, 0)
}

// CountOwn counts the own records whose persist requests are durable. took is how long the last request took, in microseconds.
func (f *Path) CountOwn(durable uint64, took uint32) {
	n := 0
	for n < len(f.own) && f.own[n].seq != 0 && (f.own[n].seq <= durable || f.dropped[rules.WitnessVolatile]) {
		w, decided := f.tally.Accepted(f.settings.Self, f.own[n].attempt)
		f.decide(w, decided, consensus.Waited{WaitedFor: f.settings.Self, DiskTook: took})
		n++
	}
	f.own = append(f.own[:0], f.own[n:]...)
}

// Recorded counts the verdicts of a voter. Only verdicts of this term and under this configuration count.
func (f *Path) Recorded(v *View, m *consensus.Message) {
	if !f.current(v, m) {
		return
	}
	for i := range m.Verdicts {
		if given := &m.Verdicts[i]; given.Refusal != consensus.RefusedNot {
			f.noteRefused(given.Refusal)
		} else {
			w, decided := f.tally.Accepted(m.From, given.Attempt)
			f.decide(w, decided, waitedFor(m))
		}
	}
}

// Answered counts the leader's verdicts. A proposal that the leader refuses takes the slow path; its count ends.
func (f *Path) Answered(v *View, m *consensus.Message) {
	if !f.current(v, m) || (m.From != v.Leader && !f.dropped[rules.ProposerMixes]) {
		return
	}
	for i := range m.Verdicts {
		if given := &m.Verdicts[i]; given.Refusal != consensus.RefusedNot {
			f.noteRefused(given.Refusal)
			f.tally.Close(given.Proposal)
		} else {
			w, decided := f.tally.Answered(m.From, *given)
			f.decide(w, decided, waitedFor(m))
		}
	}
}

func (f *Path) current(v *View, m *consensus.Message) bool {
	return m.Term == v.Term && m.Config == f.configs.ID() || f.dropped[rules.ProposerMixes]
}

func (f *Path) noteRefused(why consensus.Refused) {
	if int(why) < len(f.counts.Refused) {
		f.counts.Refused[why]++
	}
}

// waitedFor is what a decision waited for that the answers in m have completed.
func waitedFor(m *consensus.Message) consensus.Waited {
	return consensus.Waited{WaitedFor: m.From, DiskTook: m.DiskTook}
}

// decide keeps a decided proposal for TakeDecided, with what it waited for.
func (f *Path) decide(w tally.Decision, decided bool, waited consensus.Waited) {
	if decided {
		f.counts.Decided++
		w.Config, w.Waited = f.configs.ID(), waited
		f.decided = append(f.decided, w)
	}
}
