package decide

import (
	"cmp"
	"fmt"
	"slices"
)

// Loss is what is left when so many voters are lost that no quorum comes back.
type Loss struct {
	Survivor Answer
	Lost     []string // voters that are gone
	Voters   []string
}

// LossOf returns what is left; nil: a quorum may come back, or no survivor answers. The voters are those that the best
// survivor knows.
func LossOf(o *Observed) *Loss {
	if o.Cluster != nil || !o.Kept.Founded || len(o.Answers) == 0 {
		return nil
	}
	best := slices.MaxFunc(o.Answers, func(a, b Answer) int {
		return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.Index, b.Index), cmp.Compare(b.Member, a.Member))
	})
	loss := &Loss{Survivor: best, Voters: best.Voters}
	for _, name := range best.Voters {
		if o.gone(name) {
			loss.Lost = append(loss.Lost, name)
		}
	}
	if len(best.Voters)-len(loss.Lost) >= Quorum(len(best.Voters)) || slices.Contains(loss.Lost, best.Member) ||
		!slices.Contains(best.Voters, best.Member) {
		return nil
	}
	return loss
}

// gone tells whether a voter will not come back by itself, as far as Kubernetes knows.
func (o *Observed) gone(name string) bool {
	c, p := o.claim(name), o.pod(name)
	switch {
	case slices.ContainsFunc(o.Answers, func(a Answer) bool { return a.Member == name }):
		return false
	case c == nil, c.Leaving:
		return true
	}
	return p != nil && (p.NodeLost || p.Homeless) && p.Stuck >= o.Want.ReplaceAfter
}

// quorumLoss begins the recovery of the best survivor, if the spec consents to what that loses.
func quorumLoss(o *Observed) *Action {
	loss := LossOf(o)
	if loss == nil {
		return nil
	}
	s := &loss.Survivor
	said := fmt.Sprintf("%d of %d voters are lost (%v). The best survivor is %s, at revision %d", len(loss.Lost),
		len(loss.Voters),
		loss.Lost, s.Member, s.Revision)
	switch used := o.Kept.Recovery; {
	case o.Want.Consent == nil:
		return wait("%s: see status.quorumLoss", said)
	case used != nil && used.Accepted == *o.Want.Consent:
		return wait("%s: spec.recovery.acceptLossAfter %d was used already", said, used.Accepted)
	case s.Revision < *o.Want.Consent:
		return wait("%s, which is before spec.recovery.acceptLossAfter %d: more would be lost than that accepts", said,
			*o.Want.Consent)
	}
	leaves := slices.DeleteFunc(slices.Clone(s.Members), func(name string) bool { return name == s.Member })
	return &Action{Kind: Recover, Member: s.Member, Names: leaves, Serial: *o.Want.Consent, Why: said}
}

// recovery carries on with one that has begun: all members stop, the command runs on the survivor's claim, and then that
// starts alone. The others' claims are kept.
func recovery(o *Observed) *Action {
	r := o.Kept.Recovery
	ends := slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Recovers })
	if r == nil || r.Done || r.Failed != "" {
		if ends >= 0 && !o.Pods[ends].Leaving {
			return &Action{Kind: EndRecovery, Member: o.Pods[ends].Member, Why: "the recovery has ended"}
		}
		if ends >= 0 {
			return wait("the pod of the recovery ends")
		}
		if r != nil && r.Done {
			return leaveDropped(o)
		}
		return nil
	}
	if ends >= 0 {
		switch p := &o.Pods[ends]; {
		case p.Ended && p.Succeeded:
			return &Action{Kind: Recovered, Member: r.Survivor, Names: r.Leaves, Why: "the survivor was recovered"}
		case p.Ended:
			return &Action{Kind: RecoverFails, Member: r.Survivor, Why: p.Said}
		}
		return wait("%s is recovered", r.Survivor)
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Leaving {
			return &Action{Kind: DeletePod, Member: p.Member, Why: "the recovery of " + r.Survivor +
				" needs all members to stop"}
		}
	}
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.NodeLost { // nothing tells whether a process on a lost node has ended: the new epoch fences it
			return wait("%s stops before %s is recovered", p.Member, r.Survivor)
		}
	}
	return &Action{Kind: RunRecovery, Member: r.Survivor, Names: r.Leaves, Why: "the spec accepts the loss"}
}

// leaveDropped stops pods of members that a recovery left out, should they come back.
func leaveDropped(o *Observed) *Action {
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Leaving && slices.Contains(o.Kept.Dropped, p.Member) {
			return &Action{Kind: DeletePod, Member: p.Member, Why: "a recovery left it out"}
		}
	}
	return nil
}
