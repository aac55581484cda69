package observed

import (
	"slices"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// Cluster is the answer in the form of Membership.Describe, for when no leader answers that. Members before 1.1 do not tell
// which members vote in the old set of a joint configuration: their number is zero then, and Joint says that there are some.
func (a *Answer) Cluster() *quoratepb.Cluster {
	c := &quoratepb.Cluster{Config: &quoratepb.ConfigID{Index: a.Config.GetIndex()}, Joint: a.Config.GetJoint(),
		Settled: a.Config.GetSettled(), Level: a.Config.GetLevel()}
	if a.Leader != nil {
		core := a.Leader.Says.GetCore()
		c.Leader, c.Term, c.LastIndex = a.Leader.ID, core.GetTerm(), core.GetLastIndex()
	}
	for _, m := range a.Members {
		if m.Says != nil {
			c.ClusterId = m.Says.GetClusterId()
		}
		if m.Known == nil {
			continue
		}
		c.Members = append(c.Members, a.describe(m))
	}
	c.Strength = a.strength(c.Members)
	return c
}

// strength is how many failures the voters survive, of both sets as far as they are known.
func (a *Answer) strength(members []*quoratepb.Member) *quoratepb.Strength {
	var config consensus.Config
	var fit []consensus.MemberID
	for _, m := range members {
		id, known := consensus.MemberID(m.GetId()), a.Member(m.GetId()).Known
		switch {
		case known.GetVoter():
			config.Voters = append(config.Voters, id)
		case !known.GetOutgoing():
			config.Learners = append(config.Learners, id)
		}
		if known.GetOutgoing() {
			config.Outgoing = append(config.Outgoing, id)
		}
		if m.GetActive() && m.GetCaughtUp() {
			fit = append(fit, id)
		}
	}
	s := membership.Measure(&config, fit)
	return &quoratepb.Strength{Voters: int32(s.Voters), Outgoing: int32(s.Outgoing), Learners: int32(s.Learners),
		Quorum: int32(s.Quorum), OutgoingQuorum: int32(s.OutQuorum), Superquorum: int32(s.Superquorum),
		Active: int32(s.Active), Tolerates: int32(s.Tolerates)}
}

// halfKnown reports whether the configuration is joint and no member tells its old set.
func (a *Answer) halfKnown() bool {
	return a.Config.GetJoint() && !slices.ContainsFunc(a.Config.GetMembers(), (*quoratepb.ObservedMember).GetOutgoing)
}

// describe is a member as Membership.Describe has it.
func (a *Answer) describe(m *Member) *quoratepb.Member {
	known, of := m.Known, m.Followed
	one := &quoratepb.Member{Id: m.ID, Name: m.Name, PeerUrls: known.GetPeerUrls(), ClientUrls: known.GetClientUrls(),
		Started: known.GetStarted(), Zone: known.GetZone(), Build: known.GetBuild(), Level: known.GetLevel(),
		Cordoned: known.GetCordoned(), Leader: m == a.Leader, Active: a.Up(m), CaughtUp: m == a.Leader || m.Says != nil}
	switch {
	case known.GetVoter() && a.Config.GetJoint() && !known.GetOutgoing() && !a.halfKnown():
		one.Role = quoratepb.Role_ROLE_INCOMING
	case known.GetVoter():
		one.Role = quoratepb.Role_ROLE_VOTER
	case known.GetOutgoing() && known.GetDemoting():
		one.Role = quoratepb.Role_ROLE_DEMOTING
	case known.GetOutgoing():
		one.Role = quoratepb.Role_ROLE_OUTGOING
	case known.GetJoining():
		one.Role = quoratepb.Role_ROLE_JOINING
	default:
		one.Role = quoratepb.Role_ROLE_LEARNER
	}
	if of != nil {
		one.CaughtUp, one.Match, one.State, one.SilentMs = of.GetCaughtUp(), of.GetMatch(), of.GetState(), of.GetSilentMs()
		one.SnapshotSentBytes, one.SnapshotTotalBytes = of.GetSnapshotSentBytes(), of.GetSnapshotTotalBytes()
		if last := a.Leader.Says.GetCore().GetLastIndex(); last > of.GetMatch() {
			one.Lag = last - of.GetMatch()
		}
	}
	return one
}
