package fast

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/rules"
	"github.com/quorate/quorate/internal/consensus/tally"
)

// A voter asks the leader about a record that it has kept for orphanTimeouts election timeouts. That is longer than a proposer
// waits before it proposes again (RetryTicks of package node: three timeouts), so that a proposal that is still wanted is
// logged before a voter asks about it. Without rules.HastyOrphans the voter asks after retryTimeouts.
const (
	orphanTimeouts = 5
	retryTimeouts  = 3
)

// forgetApplied drops the records that the entries from..to, which the state machine has applied, decided. A record leaves the
// pool when its proposal was applied, or when the entry of its own attempt was skipped; a skipped entry of another attempt
// decides nothing.
func (f *Path) forgetApplied(from, to consensus.Index, now uint64) {
	if from > to || (f.pool.Len() == 0 && f.tally.Len() == 0) {
		return
	}
	var over map[consensus.ProposalID]bool // made when needed: most members have no records
	var passed map[consensus.Attempt]bool
	entries := f.log.Slice(from, to)
	for i := range entries {
		e := &entries[i]
		if e.Proposal.IsZero() {
			continue
		}
		switch f.tally.Close(e.Proposal) {
		case tally.EndOvertaken:
			f.counts.Overtaken++
		case tally.EndDisagreed:
			f.counts.Disagreed++
		}
		if !f.pool.Holds(e.Proposal) {
			continue
		}
		if e.Kind == consensus.EntryAbort {
			f.blame.Strike(e.Proposal.Session.Member, now, uint64(f.settings.ElectionTicks))
		}
		if over == nil {
			over, passed = map[consensus.ProposalID]bool{}, map[consensus.Attempt]bool{}
		}
		switch {
		case f.stateOf(e.Proposal).decided(), f.dropped[rules.ForgetByID] && e.ExactRevision != 0:
			over[e.Proposal] = true
		case e.Kind == consensus.EntryAbort && !f.dropped[rules.AnswerUnopened]:
			// The log has not opened the session, so the abort leaves no result. This member gave no answer for the record, so
			// dropping it loses nothing; kept, it would stay for ever.
			over[e.Proposal] = true
		case e.ExactRevision != 0:
			passed[e.Attempt()] = true
		}
	}
	if len(over)+len(passed) > 0 {
		f.forget(func(record *consensus.Record) bool { return over[record.Proposal] || passed[record.Attempt] })
	}
}

// forgetDecided drops every record that the state machine has decided.
func (f *Path) forgetDecided() {
	if f.pool.Len() > 0 {
		f.forget(func(record *consensus.Record) bool { return f.stateOf(record.Proposal).decided() })
	}
}

// forget drops records. The next persist request drops them on disk: a record that comes back after a crash is dropped again.
func (f *Path) forget(drop func(*consensus.Record) bool) {
	for _, attempt := range f.pool.Forget(drop) {
		f.unapplied.forgotten(attempt.Proposal)
		f.changes = append(f.changes, consensus.RecordChange{
			Record: consensus.Record{Attempt: attempt}, Forget: true,
		})
	}
	f.due = f.due || len(f.changes) >= maxPoolRecords
}

// Orphans returns proposals whose records were kept for long, for which this member shall ask the leader: their proposer is
// gone, or cannot reach the leader. It returns at most consensus.MaxOrphans, at most once an election timeout, and the same one
// only after orphanTimeouts again.
func (f *Path) Orphans(v *View) []consensus.ProposalID {
	electionTicks := f.settings.ElectionTicks
	patience := uint64(orphanTimeouts * electionTicks)
	if f.dropped[rules.HastyOrphans] {
		patience = uint64(retryTimeouts * electionTicks)
	}
	early := v.Now < f.askedAt+uint64(electionTicks) || v.Now <= patience
	if early || f.pool.Len() == 0 || v.Leader == consensus.NoMember {
		return nil
	}
	f.askedAt = v.Now
	f.forgetDecided()
	return f.pool.Older(v.Now-patience, v.Now, consensus.MaxOrphans)
}

// Update reads the log up to its end; false if the fast path is not enabled, or too much is not applied to abort a proposal.
func (f *Path) Update() bool { return f.Enabled() && f.unapplied.update() }

// Abort reports whether the leader is to abort a proposal that a voter asked about: it is neither logged nor applied, so it has
// not succeeded, and it cannot succeed once the abort has committed. A logged proposal ends when its entry is applied.
func (f *Path) Abort(id consensus.ProposalID) bool {
	if id.IsZero() || f.stateOf(id).decided() || f.unapplied.holds(id) {
		return false
	}
	f.counts.Aborted++
	return true
}
