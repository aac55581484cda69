package recovery

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/quorum"
	"github.com/quorate/quorate/internal/kv"
)

// A write that the fast path decided need not be in any log yet: a superquorum holds it as a record. Recovery therefore
// adopts the records of the survivor and of every directory that was compared, as a new leader adopts those of its
// voters: as exact entries in ascending revision, before the configuration entry.
//
// A leader asks a majority and so knows which records may have been decided. Recovery knows only the directories that
// it was given. The other voters may hold any record, so a record is adopted if it was decided in case all of them hold
// it. Of two such records that conflict at most one was decided: the one that more of the known members hold is
// adopted; among equals that of the survivor.

// candidate is an attempt that was found on disk.
type candidate struct {
	record    consensus.Record
	footprint consensus.Footprint
	holders   int
	own       bool // the survivor holds it
}

// adopt returns the records that must be kept, by ascending revision, and how many others were given up because they
// conflict with those.
func (s *Survivor) adopt(others []*Survivor) (kept []consensus.Record, dropped int) {
	voters := s.Config.Voters
	if s.Config.IsJoint() {
		return nil, 0 // the fast path is closed
	}
	unknown := len(voters)
	var found []candidate
	for _, holder := range append([]*Survivor{s}, others...) {
		if !slices.Contains(voters, holder.Identity.Member) {
			continue
		}
		unknown--
		found = s.count(found, holder)
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return c.holders+unknown < quorum.Super(len(voters)) })
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.holders, a.holders), compareBools(b.own, a.own), compareRecords(&a.record, &b.record))
	})
	var chosen []candidate
	for i := range found {
		c := &found[i]
		if slices.ContainsFunc(chosen, func(other candidate) bool {
			return other.record.Proposal == c.record.Proposal || other.footprint.Conflicts(&c.footprint)
		}) {
			dropped++
			continue
		}
		chosen = append(chosen, *c)
	}
	for i := range chosen {
		kept = append(kept, chosen[i].record)
	}
	slices.SortFunc(kept, func(a, b consensus.Record) int { return compareRecords(&a, &b) })
	return kept, dropped
}

// count adds what one member holds. Only records under the last configuration of the survivor's log matter. A write that was
// decided under an earlier one is in the log: a change closes the fast path until it is applied.
func (s *Survivor) count(found []candidate, holder *Survivor) []candidate {
	counted := map[consensus.Attempt]bool{}
	for _, record := range holder.records {
		same := record.Config.Index == s.ConfigID.Index && record.Config.Term == s.ConfigID.Term
		logged := s.logged[consensus.Attempt{Proposal: record.Proposal}] || s.logged[record.Attempt]
		if !same || logged || counted[record.Attempt] {
			continue
		}
		counted[record.Attempt] = true
		at := slices.IndexFunc(found, func(c candidate) bool { return c.record.Attempt == record.Attempt })
		if at < 0 {
			at = len(found)
			found = append(found, candidate{record: record, footprint: kv.PayloadFootprint(record.Payload)})
		}
		found[at].holders++
		found[at].own = found[at].own || holder == s
	}
	return found
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func compareRecords(a, b *consensus.Record) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Proposal.Session.Member, b.Proposal.Session.Member),
		cmp.Compare(a.Proposal.Session.Number, b.Proposal.Session.Number),
		cmp.Compare(a.Proposal.Sequence, b.Proposal.Sequence), bytes.Compare(a.Digest[:], b.Digest[:]))
}

// readRecords finds what the member holds for others on disk, and which attempts its log has.
func (s *Survivor) readRecords(held []consensus.Record) {
	s.records = append(held, fast.AnsweredRecords(&s.base, s.entries, s.Identity.Member)...)
	s.logged = map[consensus.Attempt]bool{}
	for i := range s.entries {
		if e := &s.entries[i]; !e.Proposal.IsZero() {
			s.logged[e.Attempt()] = true
		}
	}
}
