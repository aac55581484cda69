package fast

import (
	"bytes"

	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// Record records the proposals of a MsgRecord that the rules admit, and returns a verdict for each: its revision, or a refusal.
// If one was accepted, the verdicts may leave once the changes of the pool are durable.
func (f *Path) Record(v *View, m *consensus.Message) (verdicts []consensus.Verdict, accepted bool) {
	verdicts = make([]consensus.Verdict, len(m.Proposals))
	for i := range m.Proposals {
		verdicts[i] = f.record(v, &m.Proposals[i], m.Term, m.Config)
		accepted = accepted || verdicts[i].Refusal == consensus.RefusedNot
	}
	return verdicts, accepted
}

// record records a proposal at the revision after all that this member knows, or returns a refusal.
func (f *Path) record(v *View, p *consensus.Proposal, term consensus.Term, config consensus.ConfigID) consensus.Verdict {
	refused := func(why consensus.Refused) consensus.Verdict {
		return consensus.Verdict{Attempt: consensus.Attempt{Proposal: p.ID}, Refusal: why}
	}
	if why := f.misplaced(v, p, term, config); why != consensus.RefusedNot {
		return refused(why)
	}
	for _, held := range f.pool.Find(p.ID) {
		same := bytes.Equal(held.Payload, p.Payload)
		if same && held.Term == v.Term && held.Config == f.configs.ID() {
			return consensus.Verdict{Attempt: held.Attempt} // the proposer offers it again
		}
	}
	if why := f.inadmissible(v, p); why != consensus.RefusedNot {
		return refused(why)
	}
	footprint := f.opts.Footprint(p.Payload)
	if why := f.conflicts(v, p, &footprint); why != consensus.RefusedNot {
		return refused(why)
	}
	record := consensus.Record{
		Attempt: consensus.AttemptOf(p.ID, f.nextRevision(v.Now), p.Payload),
		Term:    v.Term, Config: f.configs.ID(), Payload: p.Payload,
	}
	f.keepRecord(record, footprint, v.Now)
	f.counts.Accepted++
	return consensus.Verdict{Attempt: record.Attempt}
}

// misplaced returns why a voter records no proposal now, or none of this term and configuration.
func (f *Path) misplaced(
	v *View, p *consensus.Proposal, term consensus.Term, config consensus.ConfigID,
) (why consensus.Refused) {
	switch {
	case f.refuses(&why, f.refusesKind(p)):
	case f.refuses(&why, when(v.Installing, consensus.RefusedClosed)):
	case f.refuses(&why, when(!v.Follows || v.Leader == consensus.NoMember, consensus.RefusedTerm)):
	case f.refuses(&why, refusesTerm(v, term), rules.ProposerMixes):
	case f.refuses(&why, f.refusesConfig(config), rules.AnyConfig):
	case f.refuses(&why, f.refusesChanging(), rules.AnyConfig):
	case f.refuses(&why, when(!f.configs.Votes(), consensus.RefusedConfig)):
	}
	return why
}

// refusesConfig refuses a proposal that was offered to the voters of another configuration.
func (f *Path) refusesConfig(config consensus.ConfigID) consensus.Refused {
	return when(config != f.configs.ID(), consensus.RefusedConfig)
}

// inadmissible returns why the proposer, the size or the state of a proposal keeps it out of the pool.
func (f *Path) inadmissible(v *View, p *consensus.Proposal) (why consensus.Refused) {
	state := f.stateOf(p.ID)
	switch {
	case f.refuses(&why, refusesUnopened(state)):
	case f.refuses(&why, when(state != ProposalUnknown, consensus.RefusedKnown)):
	case f.refuses(&why, f.refusesBlamed(v, p), rules.NoBlame):
		f.counts.Barred++
	case f.refuses(&why, f.refusesSize(p)):
	case f.refuses(&why, f.refusesShare(p), rules.NoShares):
	case f.refuses(&why, when(f.unapplied.holds(p.ID), consensus.RefusedKnown)):
	}
	return why
}

// refusesBlamed refuses a proposer whose records were aborted again and again.
func (f *Path) refusesBlamed(v *View, p *consensus.Proposal) consensus.Refused {
	return when(f.blame.Bars(p.ID.Session.Member, v.Now), consensus.RefusedFull)
}

// refusesSize refuses a proposal for which the pool has no room, and every proposal while too much of the log is not applied.
func (f *Path) refusesSize(p *consensus.Proposal) consensus.Refused {
	full := f.pool.Len() >= maxPoolRecords || f.pool.Bytes()+len(p.Payload) > maxPoolBytes || !f.unapplied.update()
	return when(full, consensus.RefusedFull)
}

// refusesShare refuses a proposer that has filled its share of the pool.
func (f *Path) refusesShare(p *consensus.Proposal) consensus.Refused {
	return when(!f.pool.HasRoom(p.ID, len(p.Payload)), consensus.RefusedFull)
}

// conflicts returns why a voter cannot record a command beside its records and its log.
func (f *Path) conflicts(v *View, p *consensus.Proposal, footprint *consensus.Footprint) (why consensus.Refused) {
	switch {
	case f.refuses(&why, refusesWidth(footprint), rules.AnyWidth):
	case f.refuses(&why, f.refusesAttempt(p)):
	case f.refuses(&why, f.outOfOrder(p, footprint)):
	case f.refuses(&why, f.refusesLogged(footprint), rules.WitnessNoLogKeys):
	case f.refuses(&why, f.refusesRecorded(footprint), rules.WitnessNoPoolKeys):
	case f.refuses(&why, f.refusesBeyond(v), rules.WitnessNoPoolOrder, rules.WitnessNoLogOrder):
	}
	return why
}

// refusesBeyond refuses every proposal while a record promises a revision that the leader will not reach: this voter counted a
// proposal that was given up, or that changed nothing. A new record would have to promise a still greater revision, in vain.
func (f *Path) refusesBeyond(v *View) consensus.Refused {
	return when(f.pool.Top() > f.boundWithRecords(v.Now), consensus.RefusedConflict)
}

// nextRevision returns a revision greater than those of all entries and records here. The leader gives the same one if it takes
// all records: one revision for each, after those of the log. Counting from the greatest record alone would hand the error of
// one record on to the next, as long as the pool is never empty.
func (f *Path) nextRevision(now uint64) uint64 {
	switch {
	case f.dropped[rules.WitnessNoPoolOrder]:
		return f.unapplied.revisionBound() + 1
	case f.dropped[rules.WitnessNoLogOrder]:
		return max(f.unapplied.revision, f.pool.Top()) + 1
	}
	return max(f.boundWithRecords(now), f.pool.Top()) + 1
}

// boundWithRecords returns the bound of the log once all records are in it, but for those that should have been logged long
// ago.
func (f *Path) boundWithRecords(now uint64) uint64 {
	coming := f.unapplied.unlogged
	if patience := uint64(f.settings.ElectionTicks / 2); now > patience {
		unlogged := func(id consensus.ProposalID) bool { return !f.unapplied.holds(id) }
		coming -= f.pool.CountOld(now-patience, unlogged)
	}
	invariant.True(coming >= 0, "%d records are held that are not logged", coming)
	return f.unapplied.revisionBound() + uint64(coming)
}

// keepRecord puts a record into the pool: in memory now, on disk with the next persist request.
func (f *Path) keepRecord(record consensus.Record, footprint consensus.Footprint, now uint64) {
	if f.pool.Add(record, footprint, now) {
		f.unapplied.recorded(record.Proposal)
		f.changes = append(f.changes, consensus.RecordChange{Record: record})
		f.due = true
	}
}

// Acknowledged returns the attempts that this member acknowledged and has not applied: its records, and the entries that it
// answered as a leader. They go with its vote.
func (f *Path) Acknowledged() []consensus.Record {
	if f.dropped[rules.VoteWithout] {
		return nil
	}
	records := f.pool.Records()
	if f.dropped[rules.VoteWithoutLog] {
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

// recordOf returns the record for which an entry stands that this member answered as a leader. The configuration in force then
// was the last one before the entry, which was settled.
func (f *Path) recordOf(e *consensus.Entry) consensus.Record {
	return consensus.Record{
		Attempt: e.Attempt(), Term: e.Term, Config: f.configs.Before(e.Index), Payload: e.Payload,
	}
}
