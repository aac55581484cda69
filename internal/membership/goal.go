package membership

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// goal is a Spec held against a View: what there is still to do. It is derived anew every time, so that it knows no more,
// and no less, than the configuration does.
type goal struct {
	spec   *Spec
	view   *View
	config consensus.Config // what the one in force becomes if nothing else happens
	names  memberNames

	arrivals arrivals             // one for each newcomer, in order
	room     []consensus.MemberID // that are removed first, for their URLs
	roles                         // room included
	cordonMarks
}

func newGoal(s *Spec, v *View, names []Named) *goal {
	g := &goal{spec: s, view: v, config: v.Config.Settle()}
	g.remove = pick(s.Remove, g.config.Contains)
	g.promote = pick(s.Promote, g.config.IsLearner)
	g.demote = pick(s.Demote, g.config.IsVoter)
	for i := range s.Update {
		if u := &s.Update[i]; g.differs(u) {
			g.update = append(g.update, *u)
			g.makeRoomFor(u.PeerURLs)
		}
	}
	for i := range s.Add {
		g.arrivals = append(g.arrivals, g.meet(&s.Add[i], i))
	}
	g.names = memberNames{view: v, config: &g.config, arrivals: g.arrivals, gone: names}
	g.cordon = pick(s.Cordon, func(id consensus.MemberID) bool { return g.marks(id, true) })
	g.uncordon = pick(s.Uncordon, func(id consensus.MemberID) bool { return g.marks(id, false) })
	for i := range g.arrivals {
		a := &g.arrivals[i]
		if a.Cordoned && g.marks(a.ID, true) { // it was there before this job
			g.cordon = append(g.cordon, a.ID)
		}
		if !a.Learner && !g.config.IsVoter(a.ID) && !slices.Contains(g.promote, a.ID) {
			g.promote = append(g.promote, a.ID)
		}
	}
	return g
}

// marks reports whether a member is there whose mark of cordon is not as wanted.
func (g *goal) marks(id consensus.MemberID, want bool) bool {
	m, ok := g.config.Member(id)
	return ok && m.Cordoned != want
}

// differs reports whether the member is there, and not as u wants it.
func (g *goal) differs(u *consensus.Member) bool {
	m, ok := g.config.Member(u.ID)
	return ok && (!SameURLs(m.PeerURLs, u.PeerURLs) || (u.Name != "" && u.Name != m.Name))
}

// meet finds out who a newcomer is. A learner that has its URLs was added by an attempt before this one, and is adopted;
// so is a voter, unless members go for it: an operator who mistypes a URL must not lose a member to it.
func (g *goal) meet(n *Newcomer, at int) arrival {
	a := arrival{Newcomer: *n}
	if n.ID != consensus.NoMember && g.config.Contains(n.ID) {
		a.present = true
		return a
	}
	g.makeRoomFor(n.PeerURLs)
	for i := range g.config.Members {
		m := &g.config.Members[i]
		switch {
		case sharedURL(m.PeerURLs, n.PeerURLs) == "" || slices.Contains(g.remove, m.ID):
		case g.adoptable(n, m):
			a.ID, a.present, a.adopted = m.ID, true, true
		default:
			a.owner = m.ID
		}
	}
	if a.ID == consensus.NoMember {
		a.ID = g.spareID(at)
	}
	return a
}

func (g *goal) adoptable(n *Newcomer, m *consensus.Member) bool {
	name := g.view.publishedName(m)
	switch {
	case !SameURLs(n.PeerURLs, m.PeerURLs), n.Name != "" && name != "" && n.Name != name,
		slices.Contains(g.spec.existing(), m.ID), n.ID != consensus.NoMember && g.view.tombstone(n.ID):
		return false
	case g.config.IsLearner(m.ID):
		return !n.Learner || !m.Promote
	}
	return !n.Learner && len(g.remove)+len(g.demote) == 0
}

// makeRoomFor notes the members that go and have one of the URLs: they must go first.
func (g *goal) makeRoomFor(urls []string) {
	for i := range g.config.Members {
		m := &g.config.Members[i]
		if slices.Contains(g.remove, m.ID) && sharedURL(m.PeerURLs, urls) != "" && !slices.Contains(g.room, m.ID) {
			g.room = append(g.room, m.ID)
		}
	}
}

// spareID is an id for a newcomer that has none yet, for plans only.
func (g *goal) spareID(at int) consensus.MemberID {
	id := ^consensus.MemberID(0) - consensus.MemberID(at)
	for g.config.Contains(id) || g.view.tombstone(id) || slices.Contains(g.spec.existing(), id) {
		id -= maxMembers
	}
	return id
}

// awaited returns the learners that must catch up before the voters change or, if they stay learners, before the job is
// done.
func (g *goal) awaited() []MemberView {
	var waits []MemberView
	note := func(id consensus.MemberID) {
		if !g.config.IsLearner(id) {
			return
		}
		m, ok := g.view.Member(id)
		if !ok {
			m = MemberView{ID: id}
		}
		known := slices.ContainsFunc(waits, func(w MemberView) bool { return w.ID == id })
		if (!m.Active || !m.CaughtUp) && !known {
			waits = append(waits, m)
		}
	}
	for i := range g.arrivals {
		note(g.arrivals[i].ID)
	}
	for _, id := range g.promote {
		note(id)
	}
	return waits
}

// reached reports whether the cluster is, or with the change that is under way will be, as the Spec wants it.
func (g *goal) reached() bool {
	return !g.roles.any() && !g.cordonMarks.any() && len(g.arrivals.missing()) == 0 && len(g.awaited()) == 0
}

func (g *goal) request(steps []consensus.ChangeStep) *consensus.ChangeRequest {
	return &consensus.ChangeRequest{Steps: steps, Protocol: g.spec.Protocol, Expected: g.view.ID}
}

// joinRequest adds all newcomers that are missing. The protocol is for voters: here none changes.
func (g *goal) joinRequest() *consensus.ChangeRequest {
	var steps []consensus.ChangeStep
	for _, a := range g.arrivals.missing() {
		steps = append(steps, consensus.ChangeStep{
			Kind: consensus.ChangeAddLearner,
			Member: consensus.Member{
				ID: a.ID, Name: a.Name, PeerURLs: sorted(a.PeerURLs), Joining: !a.Learner, Cordoned: a.Cordoned,
			},
		})
	}
	request := g.request(steps)
	request.Protocol = consensus.ProtocolAuto
	return request
}

// swapRequest makes all that is due in one change.
func (g *goal) swapRequest(due *roles) *consensus.ChangeRequest {
	all := slices.Concat(steps(consensus.ChangePromote, due.promote), steps(consensus.ChangeRemove, due.remove),
		steps(consensus.ChangeDemote, due.demote))
	for i := range due.update {
		u := &due.update[i]
		all = append(all, consensus.ChangeStep{
			Kind: consensus.ChangeUpdate, Member: consensus.Member{ID: u.ID, Name: u.Name, PeerURLs: sorted(u.PeerURLs)},
		})
	}
	return g.request(all)
}

// cordonRequest sets and takes away all marks that are not as wanted. The protocol is for voters: here none changes.
func (g *goal) cordonRequest() *consensus.ChangeRequest {
	request := g.request(slices.Concat(steps(consensus.ChangeCordon, g.cordon), steps(consensus.ChangeUncordon, g.uncordon)))
	request.Protocol = consensus.ProtocolAuto
	return request
}

func steps(kind consensus.ChangeKind, ids []consensus.MemberID) []consensus.ChangeStep {
	var list []consensus.ChangeStep
	for _, id := range ids {
		list = append(list, consensus.ChangeStep{Kind: kind, Member: consensus.Member{ID: id}})
	}
	return list
}
