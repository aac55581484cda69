package raft

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/proposer"
)

// A voter asks the leader about records that it has held for so many election timeouts, not more than so many at a time.
// The timeouts are more than a proposer waits before it asks again (RetryTicks of package member: three), so that what is
// still wanted is logged before it is asked about.
const (
	orphanTimeouts = 5
	retryTimeouts  = 3
	orphansAtOnce  = 256
)

// forgetApplied lets go of what entries up to index, which the state machine has applied, decided. A record leaves when its
// proposal was applied, or when the entry of its own attempt was passed over; that of another attempt says nothing.
func (r *Replica) forgetApplied(from, to consensus.Index) {
	f := &r.fast
	if from > to || (f.pool.Len() == 0 && f.tally.Len() == 0) {
		return
	}
	var over map[consensus.ProposalID]bool // made when needed: most members hold nothing, they only count
	var passed map[consensus.Attempt]bool
	entries := r.log.Slice(from, to)
	for i := range entries {
		e := &entries[i]
		if e.Proposal.IsZero() {
			continue
		}
		switch f.tally.Close(e.Proposal) {
		case proposer.EndAgreed:
			f.counts.Overtaken++
		case proposer.EndDisagreed:
			f.counts.Disagreed++
		}
		if !f.pool.Holds(e.Proposal) {
			continue
		}
		if e.Kind == consensus.EntryAbort {
			f.blame.Strike(e.Proposal.Session.Member, r.clock.now, uint64(r.opts.ElectionTicks))
		}
		if over == nil {
			over, passed = map[consensus.ProposalID]bool{}, map[consensus.Attempt]bool{}
		}
		switch {
		case r.fate(e.Proposal).decided(), r.opts.Faults.Fast.SkipForgetsAll && e.ExactRevision != 0:
			over[e.Proposal] = true
		case e.Kind == consensus.EntryAbort && !r.opts.Faults.Fast.AnswerStrangers:
			// An abort of a stranger leaves no result: as far as the log goes, its session was not open. Nobody answered for
			// it, so that nothing is lost with the record, and to hold it would be for ever.
			over[e.Proposal] = true
		case e.ExactRevision != 0:
			passed[consensus.Attempt{Proposal: e.Proposal, Revision: e.ExactRevision}] = true
		}
	}
	if len(over)+len(passed) > 0 {
		r.forget(func(record *consensus.Record) bool { return over[record.Proposal] || passed[record.Attempt] })
	}
}

// forgetDecided lets go of every record whose fate the state machine knows.
func (r *Replica) forgetDecided() {
	if r.fast.pool.Len() > 0 {
		r.forget(func(record *consensus.Record) bool { return r.fate(record.Proposal).decided() })
	}
}

// forget drops records, on disk with whatever is written next: one that comes back after a crash is dropped again.
func (r *Replica) forget(drop func(*consensus.Record) bool) {
	for _, attempt := range r.fast.pool.Forget(drop) {
		if r.fast.inLog[attempt.Proposal] == 0 {
			r.fast.unlogged--
		}
		r.fast.changes = append(r.fast.changes, consensus.RecordChange{
			Record: consensus.Record{Attempt: attempt}, Forget: true,
		})
	}
	r.fast.due = r.fast.due || len(r.fast.changes) >= maxPoolRecords
}

// askForOrphans asks the leader what became of records that were held for long: their proposer is gone, or cannot reach it.
func (r *Replica) askForOrphans() {
	f := &r.fast
	patience := uint64(orphanTimeouts * r.opts.ElectionTicks)
	if r.opts.Faults.Fast.HastyOrphans {
		patience = uint64(retryTimeouts * r.opts.ElectionTicks)
	}
	early := r.clock.now < f.askedAt+uint64(r.opts.ElectionTicks) || r.clock.now < patience
	if early || f.pool.Len() == 0 || r.soft.leader == consensus.NoMember {
		return
	}
	f.askedAt = r.clock.now
	r.forgetDecided()
	ids := f.pool.Older(r.clock.now-patience, r.clock.now, orphansAtOnce)
	if len(ids) == 0 {
		return
	}
	m := consensus.Message{Kind: consensus.MsgOrphans, To: r.soft.leader, Verdicts: make([]consensus.Verdict, len(ids))}
	for i, id := range ids {
		m.Verdicts[i].Proposal = id
	}
	if r.soft.role == Leader {
		r.handleOrphans(&m)
		return
	}
	r.out.sendInTerm(m)
}

// handleOrphans aborts proposals that are neither logged nor applied: none of them has succeeded, and none can any more once
// the abort has committed. What is logged tells its end by itself.
func (r *Replica) handleOrphans(m *consensus.Message) {
	if r.soft.role != Leader || !r.fastPath() || r.log.Commit() < r.soft.noop ||
		r.transfer.target != consensus.NoMember || !r.claimLog() {
		return
	}
	for i := range m.Verdicts {
		id := m.Verdicts[i].Proposal
		if id.IsZero() || r.fate(id).decided() || r.fast.inLog[id] > 0 {
			continue
		}
		r.repl.appendEntry(consensus.Entry{Kind: consensus.EntryAbort, Proposal: id})
		r.fast.counts.Aborted++
		if !r.claimLog() {
			return
		}
	}
}

// restoreRecords takes over what the disk holds, but for what was decided before.
func (r *Replica) restoreRecords(restored *Restored) {
	r.fast.revision = restored.Revision
	r.resetTally()
	if !r.fastPath() {
		return
	}
	for i := range restored.Records {
		record := &restored.Records[i]
		if r.fast.pool.Add(*record, r.footprint(record.Payload), 0) {
			r.fast.unlogged++
		}
	}
	r.forgetDecided()
}
