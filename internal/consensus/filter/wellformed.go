package filter

import "github.com/quorate/quorate/internal/consensus"

// wellFormed reports whether a member can mean m.
func wellFormed(m *consensus.Message) bool {
	if m.Kind < consensus.MsgPreVote || m.Kind > consensus.MsgOrphans || m.Kind == retiredKind {
		return false
	}
	for _, n := range [...]uint64{
		uint64(m.Term), uint64(m.Commit), uint64(m.Durable), uint64(m.Received), m.Round,
		uint64(m.Config.Index), uint64(m.Config.Term),
	} {
		if n > MaxNumber {
			return false
		}
	}
	for _, position := range [...]consensus.Position{m.Prev, m.Last, m.Match, m.Refused, m.Hint, m.Committed} {
		if position.Index > MaxNumber || position.Term > MaxNumber || (position.Index == 0 && position.Term != 0) {
			return false
		}
	}
	return entriesFormed(m) && listsFormed(m) && (m.Kind != consensus.MsgSnapshotOffer || offerFormed(m))
}

// retiredKind was the index of a leader that its reader had to confirm.
const retiredKind = 21

// entriesFormed checks what an append brings: consecutive after Prev, of terms that never fall and end with the leader's.
func entriesFormed(m *consensus.Message) bool {
	if len(m.Entries) > 0 && m.Kind != consensus.MsgAppend {
		return false
	}
	before := m.Prev
	for i := range m.Entries {
		e := &m.Entries[i]
		switch {
		case e.Index != before.Index+1 || e.Term < before.Term || e.Term > m.Term || e.Term == 0:
			return false
		case e.Kind < consensus.EntryCommand || e.Kind != consensus.EntryCommand && consensus.CheckEntry(e) != nil:
			return false
		case e.ExactRevision != 0 && (e.Kind != consensus.EntryCommand || e.Proposal.IsZero() || e.ExactRevision > MaxNumber):
			return false
		}
		before = e.Position()
	}
	return before.Index <= MaxNumber
}

func listsFormed(m *consensus.Message) bool {
	if m.Kind == consensus.MsgOrphans && len(m.Verdicts) > consensus.MaxOrphans {
		return false
	}
	for i := range m.Verdicts {
		if m.Verdicts[i].Revision > MaxNumber {
			return false
		}
	}
	for i := range m.Records {
		if r := &m.Records[i]; r.Proposal.IsZero() || r.Revision == 0 || r.Revision > MaxNumber || r.Term > m.Term {
			return false
		}
	}
	for i := range m.Refusals {
		if c := m.Refusals[i].Config; c.Index > MaxNumber || c.Term > MaxNumber {
			return false
		}
	}
	for i := range m.Reads {
		if m.Reads[i].Index > MaxNumber {
			return false
		}
	}
	return true
}

// offerFormed checks what a snapshot stands for: a configuration by which members can decide.
func offerFormed(m *consensus.Message) bool {
	s := m.Snapshot
	if s == nil || s.Position.Index == 0 || s.Position.Index > MaxNumber || s.Position.Term == 0 || s.Position.Term > m.Term ||
		s.ConfigID.Index > s.Position.Index || len(s.Config.Voters) == 0 {
		return false
	}
	for _, ids := range [...][]consensus.MemberID{s.Config.Voters, s.Config.Outgoing, s.Config.Learners} {
		for _, id := range ids {
			if _, named := s.Config.Member(id); id == consensus.NoMember || !named {
				return false
			}
		}
	}
	return true
}
