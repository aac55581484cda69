package decide

import (
	"fmt"
	"slices"
)

// noteLeaves is the annotation of a claim that Claim.Leaves is read from.
const noteLeaves = "quorate.io/leaves"

// why says why the process of a member does not serve, as far as Kubernetes tells; empty: it does not.
func (o *Observed) why(name string) string {
	p := o.pod(name)
	switch {
	case p == nil:
		return ""
	case p.NodeLost:
		return "its node is not ready, or gone"
	case p.Leaving:
		return "its pod ends"
	case p.Homeless:
		return "no node takes its pod" + after(": ", p.Waits)
	}
	return p.Waits
}

// whyOf says it of a member that the leader knows.
func (o *Observed) whyOf(m *Member) string {
	why, p := o.why(m.Name), o.pod(m.Name)
	switch {
	case why != "" || p == nil || !p.Running:
		return why
	case !m.Active:
		return "its process runs, and the leader does not hear it"
	case !m.CaughtUp:
		return "it has not caught up"
	}
	return ""
}

// whyAny says of the first of the members of which it is known why it does not serve; empty: of none.
func (o *Observed) whyAny(names []string) string {
	for _, name := range slices.SortedFunc(slices.Values(names), ByNumber) {
		if why := o.why(name); why != "" {
			return name + ": " + why
		}
	}
	return ""
}

// WhyLost says why voters are lost, as far as Kubernetes tells. One that no node takes may come back with all that it has: its
// claim is there, and no recovery compares it.
func (o *Observed) WhyLost(lost []string) string {
	var homeless []string
	for _, name := range slices.SortedFunc(slices.Values(lost), ByNumber) {
		c, p := o.claim(name), o.pod(name)
		if p != nil && p.Homeless && !p.NodeLost && c != nil && !c.Leaving {
			homeless = append(homeless, name)
		}
	}
	if len(homeless) == 0 {
		return o.whyAny(lost)
	}
	return fmt.Sprintf("No node takes %v, whose claims are there and are not compared: make room, or take podAntiAffinity: "+
		"Required out, before you accept%s", homeless, after(". "+homeless[0]+": ", o.pod(homeless[0]).Waits))
}

// names are those of the members that the leader knows.
func (c *Cluster) names() (all []string) {
	for i := range c.Members {
		all = append(all, c.Members[i].Name)
	}
	return all
}
