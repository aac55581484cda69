package observed

import (
	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus/quorum"
)

// Cluster is the answer in the form of Membership.Describe, for when no leader answers that. Which members vote in the old
// set of a joint configuration is not known: their number is zero, and Joint says that there are some.
func (a *Answer) Cluster() *quoratepb.Cluster {
	c := &quoratepb.Cluster{Config: &quoratepb.ConfigID{Index: a.Config.GetIndex()}, Joint: a.Config.GetJoint(),
		Settled: a.Config.GetSettled(), Level: a.Config.GetLevel(), Strength: &quoratepb.Strength{}}
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
		one := a.describe(m)
		c.Members = append(c.Members, one)
		switch {
		case !m.Known.GetVoter():
			c.Strength.Learners++
		case one.GetActive() && one.GetCaughtUp():
			c.Strength.Active++
			c.Strength.Voters++
		default:
			c.Strength.Voters++
		}
	}
	voters := int(c.Strength.Voters)
	c.Strength.Quorum, c.Strength.Superquorum = int32(quorum.Majority(voters)), int32(quorum.Super(voters))
	c.Strength.Tolerates = c.Strength.Active - c.Strength.Quorum
	return c
}

// describe is a member as Membership.Describe has it.
func (a *Answer) describe(m *Member) *quoratepb.Member {
	known, of := m.Known, m.Followed
	one := &quoratepb.Member{Id: m.ID, Name: m.Name, PeerUrls: known.GetPeerUrls(), ClientUrls: known.GetClientUrls(),
		Started: known.GetStarted(), Zone: known.GetZone(), Build: known.GetBuild(), Level: known.GetLevel(),
		Cordoned: known.GetCordoned(), Leader: m == a.Leader, Active: a.Up(m), CaughtUp: m == a.Leader || m.Says != nil}
	switch {
	case known.GetVoter():
		one.Role = quoratepb.Role_ROLE_VOTER
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
