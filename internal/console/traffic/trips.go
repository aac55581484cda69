package traffic

import (
	"html/template"

	"github.com/quorate/quorate/internal/base/plural"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/page"
)

// reasonRow says why writes of members were not decided by the fast path, or why a member is not drawn.
type reasonRow struct{ Name, Why string }

type tripsView struct {
	Bars   template.HTML
	Rows   []reasonRow
	Silent []reasonRow // members without a bar
}

// trips says which writes were decided in one round trip, and why the others were not.
func trips(all []member) (any, error) {
	v := tripsView{}
	var bars []chart.Row
	for i := range all {
		m := &all[i]
		t := m.traffic
		switch {
		case m.fault != "":
			v.Silent = append(v.Silent, reasonRow{m.name, "it does not answer"})
			continue
		case t == nil:
			v.Silent = append(v.Silent, reasonRow{m.name, "not told by this build"})
			continue
		case decided(t) == 0:
			v.Silent = append(v.Silent, reasonRow{m.name, "it had no writes"})
			continue
		}
		whole := decided(t)
		offered := max(t.GetOffered(), t.GetOneTrip())
		share := func(n uint64) chart.Part {
			return chart.Part{Value: float64(n) / float64(whole), Label: page.Percent(float64(n) / float64(whole))}
		}
		parts := []chart.Part{share(t.GetOneTrip()), share(offered - t.GetOneTrip()), share(whole - offered)}
		parts[0].Name, parts[1].Name, parts[2].Name = "one round trip", "offered, and decided by the leader", "not offered"
		parts[2].Quiet = true
		bars = append(bars, chart.Row{Name: m.name, Parts: parts, Label: shareOf(m)})
		for _, reason := range why(m) {
			v.add(m.name, reason)
		}
	}
	if len(bars) > 0 {
		v.Bars = chart.Bars("Writes of each member by how they were decided", bars...)
	}
	return v, nil
}

// add adds a member to those of which a reason is true.
func (v *tripsView) add(name, why string) {
	for i := range v.Rows {
		if v.Rows[i].Why == why {
			v.Rows[i].Name += ", " + name
			return
		}
	}
	v.Rows = append(v.Rows, reasonRow{name, why})
}

// why says why writes were not decided by the fast path, as far as the member tells.
func why(m *member) (reasons []string) {
	t, voters := m.traffic, 0
	for _, other := range m.is.GetConfig().GetMembers() {
		if other.GetVoter() {
			voters++
		}
	}
	switch {
	case m.leads():
		return []string{"Commits of a leader take one round trip, to the nearest majority: it needs no fast path."}
	case t.GetOffered() == 0:
		return []string{"None was offered. A member offers its writes to all voters where these are more than three and the " +
			"leader is a millisecond or more away (--fast-path=auto): here " +
			plural.Of(voters, "voter") + distance(m, voters) + "."}
	}
	if many(t.GetOffered(), t.GetOneTrip()) {
		reasons = append(reasons, "Some of the offered writes waited for the leader: they conflicted with one that was not "+
			"applied yet, or voters gave them different revisions, or the leader was first.")
	}
	if many(t.GetWrites(), t.GetOffered()) {
		reasons = append(reasons, "Some writes were not offered: they touch ranges or more than 64 KiB, or grant leases, or "+
			"change nothing, or the member rests from offers after too many disagreements.")
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "Nearly all were decided in one round trip.")
	}
	return reasons
}

// many reports whether one number is larger than another by more than a hundredth: members count them one after the other.
func many(n, other uint64) bool { return n > other && n-other > n/100 }

// distance is how far the leader is, unless there are too few voters for it to matter.
func distance(m *member, voters int) string {
	if voters <= 3 {
		return ""
	}
	for _, peer := range m.is.GetPeers() {
		if peer.GetId() == m.is.GetCore().GetLeader() && peer.GetRoundTripUs() > 0 {
			return ", and a round trip of " + micros(peer.GetRoundTripUs()) + " to the leader"
		}
	}
	return ""
}

type splitView struct {
	Bars   template.HTML
	Silent []reasonRow
}

// split shows the parts of the time that writes take, at one scale for all members.
func split(all []member) (any, error) {
	v := splitView{}
	var bars []chart.Row
	for i := range all {
		m := &all[i]
		t := m.traffic
		switch {
		case m.fault != "":
			v.Silent = append(v.Silent, reasonRow{m.name, "it does not answer"})
		case t == nil:
			v.Silent = append(v.Silent, reasonRow{m.name, "not told by this build"})
		case t.GetSplitWrites() == 0:
			v.Silent = append(v.Silent, reasonRow{m.name, "it had no writes that were measured"})
		default:
			bars = append(bars, chart.Row{Name: m.name, Label: micros(m.writeTime()), Parts: []chart.Part{
				{Name: "queue", Value: float64(bounded(t.GetQueueUs())), Label: micros(t.GetQueueUs())},
				{Name: "network", Value: float64(bounded(t.GetNetworkUs())), Label: micros(t.GetNetworkUs())},
				{Name: "sync", Value: float64(bounded(t.GetSyncUs())), Label: micros(t.GetSyncUs())},
				{Name: "apply", Value: float64(bounded(t.GetApplyUs())), Label: micros(t.GetApplyUs())},
			}})
		}
	}
	if len(bars) > 0 {
		v.Bars = chart.Bars("Mean time of a write by member", bars...)
	}
	return v, nil
}
