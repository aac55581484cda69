package reconfig

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// take does one step to c. A member that loses its last role stays among the members until the change is complete, so that no
// newcomer takes its URLs meanwhile.
func take(c *consensus.Config, step *consensus.ChangeStep, facts *Facts) consensus.RefusalReason {
	switch step.Kind {
	case consensus.ChangeAddVoter, consensus.ChangeAddLearner:
		return add(c, step, facts)
	case consensus.ChangePromote:
		return promote(c, step.Member.ID, facts)
	case consensus.ChangeDemote:
		return demote(c, step.Member.ID, facts)
	case consensus.ChangeRemove:
		return remove(c, step.Member.ID, facts)
	case consensus.ChangeUpdate:
		return update(c, step, facts)
	case consensus.ChangeBind:
		return bind(c, step, facts)
	case consensus.ChangeCordon, consensus.ChangeUncordon:
		return cordon(c, step, facts)
	}
	return consensus.ReasonBadRequest
}

// bind binds a member to the storage id that speaks for it. There is no way back: a member that lost its disk comes back as
// another one.
func bind(c *consensus.Config, step *consensus.ChangeStep, facts *Facts) consensus.RefusalReason {
	m, ok := c.Member(step.Member.ID)
	switch {
	case !ok:
		return missing(step.Member.ID, facts)
	case step.Member.Storage.IsZero():
		return consensus.ReasonBadRequest
	case m.Storage == step.Member.Storage:
		return consensus.ReasonNoChange
	case !m.Storage.IsZero():
		return consensus.ReasonBound
	}
	m.Storage = step.Member.Storage
	setMember(c, m)
	return consensus.ReasonNone
}

// cordon sets the mark of a member of any role, or takes it away: it counts while the member votes.
func cordon(c *consensus.Config, step *consensus.ChangeStep, facts *Facts) consensus.RefusalReason {
	want := step.Kind == consensus.ChangeCordon
	m, ok := c.Member(step.Member.ID)
	switch {
	case !ok:
		return missing(step.Member.ID, facts)
	case m.Cordoned == want:
		return consensus.ReasonNoChange
	}
	m.Cordoned = want
	setMember(c, m)
	return consensus.ReasonNone
}

// unbound reports whether a member of c may not vote because others are bound, and it is not.
func unbound(c *consensus.Config, m *consensus.Member) bool { return c.Binds() && m.Storage.IsZero() }

func add(c *consensus.Config, step *consensus.ChangeStep, facts *Facts) consensus.RefusalReason {
	m := step.Member
	switch {
	case slices.Contains(facts.Tombstones, m.ID):
		return consensus.ReasonMemberRemoved
	case c.Contains(m.ID):
		return consensus.ReasonMemberExists
	case urlTaken(c, &m):
		return consensus.ReasonPeerURLExists
	case step.Kind == consensus.ChangeAddVoter && unbound(c, &m):
		return consensus.ReasonUnbound
	}
	if step.Kind == consensus.ChangeAddLearner {
		if facts.MaxLearners > 0 && !m.Promote && !m.Joining && learnersToStay(c) >= facts.MaxLearners {
			return consensus.ReasonTooManyLearners
		}
		c.Learners = insert(c.Learners, m.ID)
	} else {
		m.Promote, m.Joining = false, false
		c.Voters = insert(c.Voters, m.ID)
	}
	setMember(c, m)
	return consensus.ReasonNone
}

// learnersToStay counts the learners that are not on their way to be voters: only those are limited.
func learnersToStay(c *consensus.Config) int {
	n := 0
	for _, id := range c.Learners {
		if m, _ := c.Member(id); !m.Promote && !m.Joining {
			n++
		}
	}
	return n
}

func promote(c *consensus.Config, id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	switch {
	case !c.Contains(id):
		return missing(id, facts)
	case !c.IsLearner(id):
		return consensus.ReasonNotLearner
	case !slices.Contains(facts.CaughtUp, id) || !slices.Contains(facts.Active, id):
		return consensus.ReasonLearnerLags
	}
	m, _ := c.Member(id)
	if unbound(c, &m) {
		return consensus.ReasonUnbound
	}
	c.Learners = without(c.Learners, id)
	c.Voters = insert(c.Voters, id)
	m.Promote, m.Joining = false, false
	setMember(c, m)
	return consensus.ReasonNone
}

func demote(c *consensus.Config, id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	switch {
	case !c.Contains(id):
		return missing(id, facts)
	case !slices.Contains(c.Voters, id):
		return consensus.ReasonNoChange
	}
	c.Voters = without(c.Voters, id)
	c.Learners = insert(c.Learners, id)
	return consensus.ReasonNone
}

func remove(c *consensus.Config, id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	if !c.Contains(id) {
		return missing(id, facts)
	}
	c.Voters = without(c.Voters, id)
	c.Learners = without(c.Learners, id)
	return consensus.ReasonNone
}

func update(c *consensus.Config, step *consensus.ChangeStep, facts *Facts) consensus.RefusalReason {
	m, ok := c.Member(step.Member.ID)
	if !ok {
		return missing(step.Member.ID, facts)
	}
	m.PeerURLs, m.FormerURLs = step.Member.PeerURLs, step.Member.FormerURLs
	if step.Member.Name != "" {
		m.Name = step.Member.Name
	}
	setMember(c, m) // checkUpdates looks whether another one has these URLs
	return consensus.ReasonNone
}

func missing(id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	if slices.Contains(facts.Tombstones, id) {
		return consensus.ReasonMemberRemoved
	}
	return consensus.ReasonMemberNotFound
}

func urlTaken(c *consensus.Config, m *consensus.Member) bool {
	for i := range c.Members {
		if c.Members[i].ID == m.ID {
			continue
		}
		for _, url := range m.PeerURLs {
			if slices.Contains(c.Members[i].DialURLs(), url) {
				return true
			}
		}
	}
	return false
}

func setMember(c *consensus.Config, m consensus.Member) {
	m.PeerURLs, m.FormerURLs = slices.Clone(m.PeerURLs), slices.Clone(m.FormerURLs)
	slices.Sort(m.PeerURLs)
	at := 0
	for at < len(c.Members) && c.Members[at].ID < m.ID {
		at++
	}
	if at < len(c.Members) && c.Members[at].ID == m.ID {
		c.Members[at] = m
		return
	}
	c.Members = slices.Insert(c.Members, at, m)
}

func insert(ids []consensus.MemberID, id consensus.MemberID) []consensus.MemberID {
	at, found := slices.BinarySearch(ids, id)
	if found {
		return ids
	}
	return slices.Insert(ids, at, id)
}

func without(ids []consensus.MemberID, id consensus.MemberID) []consensus.MemberID {
	ids = slices.DeleteFunc(ids, func(x consensus.MemberID) bool { return x == id })
	if len(ids) == 0 {
		return nil // one form of "none", also after encoding
	}
	return ids
}
