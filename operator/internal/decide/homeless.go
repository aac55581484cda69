package decide

import "time"

// probeFor is how long a newcomer that no node takes, and that the cluster took back, stands for all others: after that another
// one is tried, since its own volume may be what keeps it from nodes.
const probeFor = time.Hour

// homeless returns the pod of a member that no node has taken; nil: it has none, or one that a node took.
func (o *Observed) homeless(member string) *Pod {
	p := o.pod(member)
	if p == nil || !p.Homeless || p.Started || p.Running || p.NodeLost || p.Leaving {
		return nil
	}
	return p
}

// probe returns the pod of a newcomer that no node took until the cluster took it back. It stays while another one is
// needed: once a node takes it, one takes another newcomer, too. Without it newcomers would be made without end, and
// claims with them. Nil: there is none.
func (o *Observed) probe() *Pod {
	for i := range o.Claims {
		c := &o.Claims[i]
		p := o.homeless(c.Member)
		if p != nil && c.Removed && !c.Leaving && !o.Cluster.named(c.Member) && !o.leftOut(c) && p.Stuck < probeFor &&
			p.Template == o.Want.Template {
			return p
		}
	}
	return nil
}
