package fast

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/consensus/rules"
)

// ballot is a granted vote, and the records that came with it.
type ballot struct {
	voter   consensus.MemberID
	records []consensus.Record
}

// recovered is an attempt, and the number of voters among the ballots that have a record of it.
type recovered struct {
	record consensus.Record
	voters int
}

// StartElection begins to gather ballots, with this member's own.
func (f *Path) StartElection() {
	f.ballots = []ballot{{f.settings.Self, f.Acknowledged()}}
}

// AddBallot notes the records that came with a granted vote.
func (f *Path) AddBallot(voter consensus.MemberID, records []consensus.Record) {
	f.ballots = append(f.ballots, ballot{voter, records})
}

// EndElection drops the ballots.
func (f *Path) EndElection() { f.ballots = nil }

// Recover returns the entries, without index and term, that a new leader appends before its no-op: the attempts that may have
// succeeded on the fast path and are not in its log. Those are the attempts that a recovery quorum of its voters recorded under
// the last configuration of its log. An attempt under an earlier one that succeeded is in the log: a change closes the fast
// path until the change is applied.
func (f *Path) Recover() []consensus.Entry {
	ballots := f.ballots
	f.ballots = nil
	if !f.Enabled() {
		return nil
	}
	var entries []consensus.Entry
	known := f.logged()
	for _, c := range f.recordedByEnough(ballots) {
		id := c.record.Proposal
		// A slow entry of the proposal, or an abort, has decided it; an entry of another attempt has not.
		if f.stateOf(id).decided() || known[consensus.Attempt{Proposal: id}] || known[c.record.Attempt] {
			continue
		}
		entries = append(entries, consensus.Entry{
			Kind: consensus.EntryCommand, Proposal: id, ExactRevision: c.record.Revision, Payload: c.record.Payload,
		})
		f.counts.Recovered++
	}
	return entries
}

// logged returns the attempts in the log that are not applied; attempts of slow entries have revision zero.
func (f *Path) logged() map[consensus.Attempt]bool {
	attempts := map[consensus.Attempt]bool{}
	entries := f.log.Slice(f.log.Applied()+1, f.log.Last())
	for i := range entries {
		if e := &entries[i]; !e.Proposal.IsZero() {
			attempts[e.Attempt()] = true
			if f.dropped[rules.RecoverLoggedByID] {
				attempts[consensus.Attempt{Proposal: e.Proposal}] = true
			}
		}
	}
	return attempts
}

// recordedByEnough returns, by ascending revision, the attempts that a recovery quorum of the voters among the ballots have
// recorded. A record whose command this build does not know counts for nothing: no voter keeps one, as its footprint is a
// barrier, and so no such command was decided. A peer that breaks the rules sends it, perhaps under the name of an attempt of
// others, and an entry with it would stop every member.
func (f *Path) recordedByEnough(ballots []ballot) []recovered {
	last := f.configs.Last()
	voters := last.Config.Voters
	var found []recovered
	at := map[consensus.Attempt]int{}
	for _, b := range ballots {
		if !slices.Contains(voters, b.voter) {
			continue
		}
		counted := map[consensus.Attempt]bool{}
		for _, record := range b.records {
			key := record.Attempt
			if f.dropped[rules.RecoverByID] {
				key.Revision = 0
			}
			if f.dropped[rules.RecoverAnyPayload] {
				key.Digest = consensus.Digest{}
			}
			underLast := record.Config.Index == last.ID.Index && record.Config.Term == last.ID.Term
			anyConfig := f.dropped[rules.AnyConfig] || f.dropped[rules.ReuseConfigIDs]
			if counted[key] || !underLast && !anyConfig || !f.readable(record.Payload) {
				continue
			}
			counted[key] = true
			if _, seen := at[key]; !seen {
				at[key] = len(found)
				found = append(found, recovered{record: record})
			}
			found[at[key]].voters++
		}
	}
	need := quorum.Recovery(len(voters))
	switch {
	case f.dropped[rules.RecoverMore]:
		need++
	case f.dropped[rules.RecoverLess]:
		need--
	}
	found = slices.DeleteFunc(found, func(c recovered) bool { return c.voters < need })
	slices.SortFunc(found, func(a, b recovered) int {
		if f.dropped[rules.RecoverDescending] {
			a, b = b, a
		}
		x, y := &a.record, &b.record
		return cmp.Or(cmp.Compare(x.Revision, y.Revision), cmp.Compare(x.Proposal.Session.Member, y.Proposal.Session.Member),
			cmp.Compare(x.Proposal.Session.Number, y.Proposal.Session.Number),
			cmp.Compare(x.Proposal.Sequence, y.Proposal.Sequence), bytes.Compare(x.Digest[:], y.Digest[:]))
	})
	return found
}

// readable reports whether this build knows a command.
func (f *Path) readable(payload []byte) bool {
	return f.settings.Readable == nil || f.settings.Readable(payload)
}

// AnsweredRecords returns the records of the entries that a member answered early as a leader. A shell that drops a log because
// a snapshot replaces it must put these records into the pool on disk at the same time. Base is the position after which that
// log begins.
func AnsweredRecords(base *consensus.SnapshotMeta, entries []consensus.Entry, self consensus.MemberID) []consensus.Record {
	var records []consensus.Record
	config := base.ConfigID
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Kind == consensus.EntryConfig:
			config = consensus.ConfigID{Index: e.Index, Term: e.Term}
		case e.Answered == self && e.ExactRevision != 0:
			records = append(records, consensus.Record{
				Attempt: e.Attempt(), Term: e.Term, Config: config, Payload: e.Payload,
			})
		}
	}
	return records
}
