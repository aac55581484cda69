package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// primary checks primary order (Junqueira, Reed and Serafini, "Zab", DSN 2011, 4.1), as docs/membership.md states it: a leader
// logs proposals in the order in which its core received them, and the committed entries of each term are a prefix of those
// that the leader of the term logged, with no later entry of an earlier leader. With a change of the configuration it is the
// same: realtime compares changes with what clients saw.
//
// A leader may refuse proposals, so its entries are a subsequence of the proposals that it received.
type primary struct{ members map[consensus.MemberID]*given }

// given are the proposals that a member's core received and has not logged yet.
type given struct {
	proposals []consensus.ProposalID
	latest    int            // index in proposals of the first one of the member's last step
	open      consensus.Term // term that the member leads; its entries of the step in which it begins may be recovered ones
}

func (p *primary) of(member consensus.MemberID) *given {
	if p.members == nil {
		p.members = map[consensus.MemberID]*given{}
	}
	g := p.members[member]
	if g == nil {
		g = &given{}
		p.members[member] = g
	}
	return g
}

// Stepping records that the core of a member is about to step. Calls of Given until the next Stepping belong to that step.
func (s *Suite) Stepping(member consensus.MemberID) {
	g := s.primary.of(member)
	if g.open == 0 {
		g.proposals = g.proposals[:0] // a member that does not lead keeps no proposals
	}
	g.latest = len(g.proposals)
}

// Given records that the core of a member received proposals, which it logs if it leads.
func (s *Suite) Given(member consensus.MemberID, proposals []consensus.Proposal) {
	g := s.primary.of(member)
	for i := range proposals {
		g.proposals = append(g.proposals, proposals[i].ID)
	}
}

// led records that a member begins to lead.
func (p *primary) led(member consensus.MemberID, term consensus.Term) {
	g := p.of(member)
	g.open = term
	g.forget(g.latest)
}

// appended is called with each entry that a member appends to its log.
func (p *primary) appended(s *Suite, member consensus.MemberID, e *consensus.Entry) {
	g := p.of(member)
	switch {
	case s.elections.leaders[e.Term] != member:
		g.open = 0
	case g.open == e.Term && e.Kind == consensus.EntryCommand:
		at := slices.Index(g.proposals, e.Proposal)
		if at < 0 {
			s.report("primary-order", "leader %v of term %d logs %v of %v, which it was not given, or before what came earlier",
				member, e.Term, e.Position(), e.Proposal)
			return
		}
		g.forget(at + 1)
	}
}

// forget drops the oldest n proposals.
func (g *given) forget(n int) {
	g.proposals = g.proposals[n:]
	g.latest = max(g.latest-n, 0)
}

// restarted drops the proposals that a member received before it crashed.
func (p *primary) restarted(member consensus.MemberID) { *p.of(member) = given{} }

// inOrder is called with each entry that is the first at its index to be applied anywhere. The entries before it are those that
// its leader had logged before it.
func (l *logs) inOrder(s *Suite, e *consensus.Entry) {
	logged, known := l.seen[e.Position()]
	if before := l.chosenAt(e.Index - 1); known && before != 0 && (logged.previous != before || before > e.Term) {
		s.report("primary-order", "entry %v is committed after one of term %d; its leader logged it after one of term %d",
			e.Position(), before, logged.previous)
	}
}
