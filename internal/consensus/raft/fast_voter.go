package raft

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/invariant"
)

// addressedVerdict is a verdict on its way to a proposer.
type addressedVerdict struct {
	to      consensus.MemberID
	verdict consensus.Verdict
}

// handleRecord holds the proposals that may be held, and answers for each: at which revision, durably, or why not.
func (r *Replica) handleRecord(m *consensus.Message) {
	if m.From == r.opts.ID {
		r.recordOwn(m)
		return
	}
	verdicts := make([]consensus.Verdict, len(m.Proposals))
	accepted := false
	for i := range m.Proposals {
		verdicts[i] = r.record(&m.Proposals[i], m.Term, m.Config)
		accepted = accepted || verdicts[i].Refusal == consensus.RefusedNot
	}
	after := (accepted || r.hard.pending()) && !r.opts.Faults.Fast.RecordTooSoon
	r.out.send(consensus.Message{Kind: consensus.MsgRecorded, To: m.From, Verdicts: verdicts}, after)
}

// record holds a proposal at the revision that comes next after all that this member knows, or says why not. What it says
// may leave once the pool is durable.
func (r *Replica) record(p *consensus.Proposal, term consensus.Term, config consensus.ConfigID) consensus.Verdict {
	f, faults := &r.fast, &r.opts.Faults.Fast
	refused := func(why consensus.Refused) consensus.Verdict {
		return consensus.Verdict{Attempt: consensus.Attempt{Proposal: p.ID}, Refusal: why}
	}
	switch {
	case !r.opensFast() || r.installing != nil || p.Kind != consensus.EntryCommand || p.ID.IsZero():
		return refused(consensus.RefusedClosed)
	case r.soft.role != Follower || r.soft.leader == consensus.NoMember || (term != r.hard.term && !faults.MixAnswers):
		return refused(consensus.RefusedTerm)
	case (config != r.configs.ID() || !r.configs.Stable()) && !faults.AnyConfig, !r.configs.Votes():
		return refused(consensus.RefusedConfig)
	}
	for _, held := range f.pool.Find(p.ID) {
		if held.Term == r.hard.term && held.Config == r.configs.ID() {
			return consensus.Verdict{Attempt: held.Attempt} // the question came twice
		}
	}
	switch r.fate(p.ID) {
	case FateUnknown:
	case FateStrange: // of strangers nothing is held: nobody could ever decide it
		return refused(consensus.RefusedStrange)
	default:
		return refused(consensus.RefusedKnown)
	}
	if f.blame.Bars(p.ID.Session.Member, r.clock.now) && !faults.NoBlame {
		f.counts.Barred++
		return refused(consensus.RefusedFull)
	}
	if f.pool.Len() >= maxPoolRecords || f.pool.Bytes()+len(p.Payload) > maxPoolBytes || !r.claimLog() ||
		(!f.pool.HasRoom(p.ID, len(p.Payload)) && !faults.NoShares) {
		return refused(consensus.RefusedFull)
	}
	if f.inLog[p.ID] > 0 {
		return refused(consensus.RefusedKnown)
	}
	footprint := r.footprint(p.Payload)
	if !footprint.Narrow() && !faults.AnyWidth {
		return refused(consensus.RefusedWide)
	}
	if f.pool.Holds(p.ID) {
		return refused(consensus.RefusedConflict) // another attempt, also of what touches nothing: one of both would come first
	}
	if r.ordered(p, &footprint) || f.claims.Meets(&footprint) || (f.pool.Meets(&footprint) && !faults.NoPoolFootprint) {
		return refused(consensus.RefusedConflict)
	}
	if f.pool.Top() > r.boundWithHeld() && !faults.NoPoolOrder && !faults.NoLogOrder {
		// What is held lies beyond what the leader can come to give it: something was counted that was given up, or changed
		// nothing. What came now would have to lie beyond it, in vain.
		return refused(consensus.RefusedConflict)
	}
	record := consensus.Record{
		Attempt: consensus.Attempt{Proposal: p.ID, Revision: r.nextRevision()},
		Term:    r.hard.term, Config: r.configs.ID(), Payload: p.Payload,
	}
	r.keepRecord(record, footprint)
	f.counts.Accepted++
	return consensus.Verdict{Attempt: record.Attempt}
}

// nextRevision is greater than that of everything logged and held here, and what the leader gives next if it takes what is
// held: a revision for each, after those of the log. To count only from the greatest held would pass on, from each to the
// next, what one was wrong by, for as long as there is always something held.
func (r *Replica) nextRevision() uint64 {
	switch faults := &r.opts.Faults.Fast; {
	case faults.NoPoolOrder:
		return r.boundOf() + 1
	case faults.NoLogOrder:
		return max(r.fast.revision, r.fast.pool.Top()) + 1
	}
	return max(r.boundWithHeld(), r.fast.pool.Top()) + 1
}

// boundWithHeld is the bound of the log once all that is held is in it, too, but for what should have come long ago.
func (r *Replica) boundWithHeld() uint64 {
	coming := r.fast.unlogged
	if patience := uint64(r.opts.ElectionTicks / 2); r.clock.now > patience {
		unlogged := func(id consensus.ProposalID) bool { return r.fast.inLog[id] == 0 }
		coming -= r.fast.pool.CountOld(r.clock.now-patience, unlogged)
	}
	invariant.True(coming >= 0, "%d records are held that are not logged", coming)
	return r.boundOf() + uint64(coming)
}

// keepRecord puts a record into the pool, in memory now and on disk with the next request.
func (r *Replica) keepRecord(record consensus.Record, footprint consensus.Footprint) {
	if r.fast.pool.Add(record, footprint, r.clock.now) {
		if r.fast.inLog[record.Proposal] == 0 {
			r.fast.unlogged++
		}
		r.fast.changes = append(r.fast.changes, consensus.RecordChange{Record: record})
		r.fast.due = true
	}
}

// acknowledgedRecords returns what this member acknowledged and has not applied: its pool, and what it answered fast
// as a leader. It goes with a vote.
func (r *Replica) acknowledgedRecords() []consensus.Record {
	faults := &r.opts.Faults.Fast
	if faults.VoteWithout {
		return nil
	}
	records := r.fast.pool.Records()
	if faults.VoteWithoutOwn {
		return records
	}
	entries := r.log.Slice(r.log.Applied()+1, r.log.Last())
	for i := range entries {
		if e := &entries[i]; e.Answered == r.opts.ID && e.ExactRevision != 0 {
			records = append(records, r.recordOf(e))
		}
	}
	return records
}

// recordOf turns an entry that this member answered fast into the record that it stands for. The configuration in force then
// was the last one before the entry, settled.
func (r *Replica) recordOf(e *consensus.Entry) consensus.Record {
	return consensus.Record{
		Attempt: consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision},
		Term:    e.Term, Config: r.configs.Before(e.Index), Payload: e.Payload,
	}
}

// rescue moves the entries from from on that this member answered fast back into its pool, before they are dropped.
func (r *Replica) rescue(from consensus.Index) {
	if !r.fastPath() {
		return
	}
	from = max(from, r.log.Applied()+1)
	if from <= r.log.Last() && !r.opts.Faults.Fast.TruncationForgets {
		entries := slices.Clone(r.log.Slice(from, r.log.Last()))
		for i := range entries {
			if e := &entries[i]; e.Answered == r.opts.ID && e.ExactRevision != 0 {
				r.keepRecord(r.recordOf(e), r.footprint(e.Payload))
			}
		}
	}
	r.unclaimFrom(from)
}
