package reconfig

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Facts are what the leader knows beside the configuration.
type Facts struct {
	Active      []consensus.MemberID // heard lately, the leader included
	CaughtUp    []consensus.MemberID // hold nearly all of the leader's log
	Tombstones  []consensus.MemberID // removed for ever
	MaxLearners int                  // zero: no limit
	Strict      bool                 // refuse what would leave no reachable majority
}

// Next returns the change that does what request asks for, from the configuration current with the given id.
func Next(current *consensus.Config, id consensus.ConfigID, request *consensus.ChangeRequest, facts *Facts) (
	consensus.ConfigChange, consensus.RefusalReason,
) {
	if request.Expected != (consensus.ConfigID{}) && request.Expected != id {
		return consensus.ConfigChange{}, consensus.ReasonStaleConfig
	}
	if request.Member.ID == consensus.NoMember {
		return consensus.ConfigChange{}, consensus.ReasonBadRequest
	}
	if current.IsJoint() {
		return consensus.ConfigChange{}, consensus.ReasonChangePending
	}
	change := consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle,
		Replaces: id,
		Config:   current.Clone(),
	}
	reason := consensus.ReasonBadRequest
	switch request.Kind {
	case consensus.ChangeAddVoter, consensus.ChangeAddLearner:
		reason = add(&change.Config, request, facts)
	case consensus.ChangePromote:
		reason = promote(&change.Config, request.Member.ID, facts)
	case consensus.ChangeRemove:
		reason = remove(&change.Config, request.Member.ID, facts)
		change.Tombs = []consensus.MemberID{request.Member.ID}
	case consensus.ChangeUpdate:
		reason = update(&change.Config, request, facts)
	}
	if reason != consensus.ReasonNone {
		return consensus.ConfigChange{}, reason
	}
	return change, consensus.ReasonNone
}

func add(c *consensus.Config, request *consensus.ChangeRequest, facts *Facts) consensus.RefusalReason {
	m := request.Member
	switch {
	case slices.Contains(facts.Tombstones, m.ID):
		return consensus.ReasonMemberRemoved
	case c.Contains(m.ID):
		return consensus.ReasonMemberExists
	case urlTaken(c, &m):
		return consensus.ReasonPeerURLExists
	}
	if request.Kind == consensus.ChangeAddLearner {
		if facts.MaxLearners > 0 && !m.Promote && learnersToStay(c) >= facts.MaxLearners {
			return consensus.ReasonTooManyLearners
		}
		c.Learners = insert(c.Learners, m.ID)
	} else {
		alone := len(c.Voters) == 1
		c.Voters = insert(c.Voters, m.ID)
		// The new voter has not been heard yet: the others must be a majority without it. Only a lone voter may take the
		// risk, or it could never grow by adding voters.
		if facts.Strict && !alone && !reachable(c, facts) {
			return consensus.ReasonQuorumLost
		}
	}
	setMember(c, m)
	return consensus.ReasonNone
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
	c.Learners = without(c.Learners, id)
	c.Voters = insert(c.Voters, id)
	m, _ := c.Member(id)
	m.Promote = false
	setMember(c, m)
	if facts.Strict && !reachable(c, facts) {
		return consensus.ReasonQuorumLost
	}
	return consensus.ReasonNone
}

// learnersToStay counts the learners that are not on their way to be voters: only those are limited.
func learnersToStay(c *consensus.Config) int {
	n := 0
	for _, id := range c.Learners {
		if m, _ := c.Member(id); !m.Promote {
			n++
		}
	}
	return n
}

func remove(c *consensus.Config, id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	if !c.Contains(id) {
		return missing(id, facts)
	}
	voted := slices.Contains(c.Voters, id)
	c.Voters = without(c.Voters, id)
	c.Learners = without(c.Learners, id)
	c.Members = slices.DeleteFunc(c.Members, func(m consensus.Member) bool { return m.ID == id })
	switch {
	case len(c.Voters) == 0:
		return consensus.ReasonLastVoter
	case voted && facts.Strict && !reachable(c, facts):
		return consensus.ReasonQuorumLost
	}
	return consensus.ReasonNone
}

func update(c *consensus.Config, request *consensus.ChangeRequest, facts *Facts) consensus.RefusalReason {
	m, ok := c.Member(request.Member.ID)
	if !ok {
		return missing(request.Member.ID, facts)
	}
	m.PeerURLs = request.Member.PeerURLs
	if request.Member.Name != "" {
		m.Name = request.Member.Name
	}
	if urlTaken(c, &m) {
		return consensus.ReasonPeerURLExists
	}
	setMember(c, m)
	return consensus.ReasonNone
}

func missing(id consensus.MemberID, facts *Facts) consensus.RefusalReason {
	if slices.Contains(facts.Tombstones, id) {
		return consensus.ReasonMemberRemoved
	}
	return consensus.ReasonMemberNotFound
}

// reachable reports whether a majority of the voters was heard lately.
func reachable(c *consensus.Config, facts *Facts) bool {
	heard := 0
	for _, id := range c.Voters {
		if slices.Contains(facts.Active, id) {
			heard++
		}
	}
	return heard >= quorum.Majority(len(c.Voters))
}

func urlTaken(c *consensus.Config, m *consensus.Member) bool {
	for i := range c.Members {
		if c.Members[i].ID == m.ID {
			continue
		}
		for _, url := range m.PeerURLs {
			if slices.Contains(c.Members[i].PeerURLs, url) {
				return true
			}
		}
	}
	return false
}

func setMember(c *consensus.Config, m consensus.Member) {
	m.PeerURLs = slices.Clone(m.PeerURLs)
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
