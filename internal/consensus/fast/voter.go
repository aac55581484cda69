package fast

import (
	"bytes"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/invariant"
)

// Record takes the proposals of a MsgRecord into the pool, as far as the rules allow, and answers for each: at which
// revision, or why not. If any was accepted, the answers may leave once the changes of the pool are durable.
func (f *Path) Record(v *View, m *consensus.Message) (verdicts []consensus.Verdict, accepted bool) {
	verdicts = make([]consensus.Verdict, len(m.Proposals))
	for i := range m.Proposals {
		verdicts[i] = f.record(v, &m.Proposals[i], m.Term, m.Config)
		accepted = accepted || verdicts[i].Refusal == consensus.RefusedNot
	}
	return verdicts, accepted
}

// record takes a proposal at the revision that comes next after all that this member knows, or says why not.
func (f *Path) record(v *View, p *consensus.Proposal, term consensus.Term, config consensus.ConfigID) consensus.Verdict {
	faults := f.faults
	refused := func(why consensus.Refused) consensus.Verdict {
		return consensus.Verdict{Attempt: consensus.Attempt{Proposal: p.ID}, Refusal: why}
	}
	switch {
	case !f.Open() || v.Installing || p.Kind != consensus.EntryCommand || p.ID.IsZero():
		return refused(consensus.RefusedClosed)
	case !v.Follows || v.Leader == consensus.NoMember || (term != v.Term && !faults.ProposerMixes):
		return refused(consensus.RefusedTerm)
	case (config != f.configs.ID() || !f.configs.Stable()) && !faults.AnyConfig, !f.configs.Votes():
		return refused(consensus.RefusedConfig)
	}
	for _, held := range f.pool.Find(p.ID) {
		same := bytes.Equal(held.Payload, p.Payload)
		if same && held.Term == v.Term && held.Config == f.configs.ID() {
			return consensus.Verdict{Attempt: held.Attempt} // the question came twice
		}
	}
	if why := f.admissible(v, p); why != consensus.RefusedNot {
		return refused(why)
	}
	footprint := f.opts.Footprint(p.Payload)
	if why := f.conflicts(p, &footprint); why != consensus.RefusedNot {
		return refused(why)
	}
	if f.pool.Top() > f.boundWithRecords(v.Now) && !faults.WitnessNoPoolOrder && !faults.WitnessNoLogOrder {
		// What is recorded lies beyond what the leader can come to give it: something was counted that was given up, or
		// changed nothing. What came now would have to lie beyond it, in vain.
		return refused(consensus.RefusedConflict)
	}
	record := consensus.Record{
		Attempt: consensus.AttemptOf(p.ID, f.nextRevision(v.Now), p.Payload),
		Term:    v.Term, Config: f.configs.ID(), Payload: p.Payload,
	}
	f.keepRecord(record, footprint, v.Now)
	f.counts.Accepted++
	return consensus.Verdict{Attempt: record.Attempt}
}

// admissible returns why the proposer, the size or the state of a proposal keep it out of the pool, RefusedNot if nothing
// does.
func (f *Path) admissible(v *View, p *consensus.Proposal) consensus.Refused {
	switch f.stateOf(p.ID) {
	case ProposalUnknown:
	case ProposalNoSession: // nobody could ever decide it
		return consensus.RefusedNoSession
	default:
		return consensus.RefusedKnown
	}
	if f.blame.Bars(p.ID.Session.Member, v.Now) && !f.faults.NoBlame {
		f.counts.Barred++
		return consensus.RefusedFull
	}
	if f.pool.Len() >= maxPoolRecords || f.pool.Bytes()+len(p.Payload) > maxPoolBytes || !f.unapplied.update() ||
		(!f.pool.HasRoom(p.ID, len(p.Payload)) && !f.faults.NoShares) {
		return consensus.RefusedFull
	}
	if f.unapplied.holds(p.ID) {
		return consensus.RefusedKnown
	}
	return consensus.RefusedNot
}

// conflicts returns why a voter cannot record a command beside what it has recorded and what is logged.
func (f *Path) conflicts(p *consensus.Proposal, footprint *consensus.Footprint) consensus.Refused {
	if !footprint.Narrow() && !f.faults.AnyWidth {
		return consensus.RefusedWide
	}
	if f.pool.Holds(p.ID) {
		return consensus.RefusedConflict // another attempt, also of what touches nothing: one of both would come first
	}
	if f.ordered(p, footprint) || (f.unapplied.claims.Meets(footprint) && !f.faults.WitnessNoLogKeys) ||
		(f.pool.Meets(footprint) && !f.faults.WitnessNoPoolKeys) {
		return consensus.RefusedConflict
	}
	return consensus.RefusedNot
}

// nextRevision is greater than that of everything logged and recorded here, and what the leader gives next if it takes what
// is recorded: a revision for each, after those of the log. To count only from the greatest record would pass on, from each
// to the next, what one was wrong by, for as long as there is always some record.
func (f *Path) nextRevision(now uint64) uint64 {
	switch {
	case f.faults.WitnessNoPoolOrder:
		return f.unapplied.revisionBound() + 1
	case f.faults.WitnessNoLogOrder:
		return max(f.unapplied.revision, f.pool.Top()) + 1
	}
	return max(f.boundWithRecords(now), f.pool.Top()) + 1
}

// boundWithRecords is the bound of the log once all records are in it, too, but for those that should have come long ago.
func (f *Path) boundWithRecords(now uint64) uint64 {
	coming := f.unapplied.unlogged
	if patience := uint64(f.settings.ElectionTicks / 2); now > patience {
		unlogged := func(id consensus.ProposalID) bool { return !f.unapplied.holds(id) }
		coming -= f.pool.CountOld(now-patience, unlogged)
	}
	invariant.True(coming >= 0, "%d records are held that are not logged", coming)
	return f.unapplied.revisionBound() + uint64(coming)
}

// keepRecord puts a record into the pool, in memory now and on disk with the next request.
func (f *Path) keepRecord(record consensus.Record, footprint consensus.Footprint, now uint64) {
	if f.pool.Add(record, footprint, now) {
		f.unapplied.recorded(record.Proposal)
		f.changes = append(f.changes, consensus.RecordChange{Record: record})
		f.due = true
	}
}

// Acknowledged returns what this member acknowledged and has not applied: its pool, and what it answered as a leader. It
// goes with a vote.
func (f *Path) Acknowledged() []consensus.Record {
	if f.faults.VoteWithout {
		return nil
	}
	records := f.pool.Records()
	if f.faults.VoteWithoutLog {
		return records
	}
	entries := f.log.Slice(f.log.Applied()+1, f.log.Last())
	for i := range entries {
		if e := &entries[i]; e.Answered == f.settings.Self && e.ExactRevision != 0 {
			records = append(records, f.recordOf(e))
		}
	}
	return records
}

// recordOf turns an entry that this member answered as a leader into the record that it stands for. The configuration in
// force then was the last one before the entry, settled.
func (f *Path) recordOf(e *consensus.Entry) consensus.Record {
	return consensus.Record{
		Attempt: e.Attempt(), Term: e.Term, Config: f.configs.Before(e.Index), Payload: e.Payload,
	}
}
