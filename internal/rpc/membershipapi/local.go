package membershipapi

import (
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/membership"
)

// localView is what this member knows of the cluster by itself: who the members are, not how. It needs neither a leader
// nor a connection. Of the others only the leader's being there is known.
func localView(o *Options) (membership.View, consensus.Term) {
	m := o.Member
	status := m.Status()
	v := membership.View{
		Leader: m.Leader(), Config: status.Config, ID: status.ConfigID, Protocol: status.Protocol,
		Settled: status.ConfigSettled, Last: status.LastIndex, Strict: o.StrictReconfig,
		Now: o.Clock.Now().UnixMilli(),
	}
	machine, release := m.Machine()
	defer release()
	v.Level = machine.ActiveLevel()
	for i := range status.Config.Members {
		known := &status.Config.Members[i]
		seen := membership.MemberView{ID: known.ID, Name: known.Name, PeerURLs: known.PeerURLs}
		if published, ok := machine.Published(known.ID); ok {
			seen.Started, seen.ClientURLs, seen.Version = true, published.ClientURLs, published.Version
			seen.Zone, seen.Build, seen.Level = published.Zone, published.Build, published.Level
			if published.Name != "" {
				seen.Name = published.Name
			}
		}
		seen.Active = known.ID == m.ID() || known.ID == v.Leader
		seen.CaughtUp = seen.Active
		if known.ID == m.ID() {
			seen.Match = status.LastIndex
		}
		v.Members = append(v.Members, seen)
	}
	for _, tomb := range machine.Tombstones() {
		v.Tombstones = append(v.Tombstones, tomb.Member)
	}
	return v, m.Term()
}
