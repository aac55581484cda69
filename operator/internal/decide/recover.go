package decide

import (
	"cmp"
	"fmt"
	"slices"
)

// Loss is what is left when so many voters are lost that no quorum comes back.
type Loss struct {
	Survivor  Answer   // with the most advanced log
	Survivors []string // that answer, the survivor among them
	Lost      []string // voters that are gone
	Silent    []string // voters that are not gone and do not answer: one of these may be a better survivor
	Voters    []string
}

// LossOf returns what is left; nil: a quorum may come back, or no survivor answers. The voters are those that the best
// survivor knows.
func LossOf(o *Observed) *Loss {
	if o.Cluster != nil || !o.Kept.Founded || len(o.Answers) == 0 {
		return nil
	}
	best := slices.MaxFunc(o.Answers, compareLogs)
	loss := &Loss{Survivor: best, Voters: best.Voters}
	for _, name := range best.Voters {
		switch {
		case slices.ContainsFunc(o.Answers, func(a Answer) bool { return a.Member == name }):
			loss.Survivors = append(loss.Survivors, name)
		case o.gone(name):
			loss.Lost = append(loss.Lost, name)
		default:
			loss.Silent = append(loss.Silent, name)
		}
	}
	if len(best.Voters)-len(loss.Lost) >= Quorum(len(best.Voters)) || !slices.Contains(best.Voters, best.Member) {
		return nil
	}
	return loss
}

// compareLogs orders answers by what their logs hold, and by name where that is the same.
func compareLogs(a, b Answer) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Term, b.Term), cmp.Compare(a.Index, b.Index),
		cmp.Compare(b.Member, a.Member))
}

// gone tells whether a voter will not come back by itself, as far as Kubernetes knows.
func (o *Observed) gone(name string) bool {
	c, p := o.claim(name), o.pod(name)
	switch {
	case c == nil, c.Leaving:
		return true
	}
	return p != nil && (p.NodeLost || p.Homeless) && p.Stuck >= o.Want.ReplaceAfter
}

// quorumLoss begins the recovery of the best survivor, if the spec consents to what that loses: to the revision that the status
// reports.
func quorumLoss(o *Observed) *Action {
	loss := LossOf(o)
	if loss == nil {
		return nil
	}
	s := &loss.Survivor
	said := fmt.Sprintf("%d of %d voters are lost (%v). The best survivor is %s, at revision %d", len(loss.Lost),
		len(loss.Voters), loss.Lost, s.Member, s.Revision)
	if len(loss.Silent) > 0 {
		return wait("%s of those that answer. %v may have more, and are waited for: delete the claims of those whose data are "+
			"gone for ever", said, loss.Silent)
	}
	reported, consent := o.Kept.Reported, o.Want.Consent
	switch {
	case consent == nil:
		return wait("%s: see status.quorumLoss", said)
	case o.void(*consent):
		return wait("%s. spec.recovery.acceptLossAfter %d is void: see status.voidConsent. Take spec.recovery out, and then "+
			"accept the loss that status.quorumLoss reports", said, *consent)
	case reported == nil:
		return &Action{Kind: VoidConsent, Serial: *consent,
			Why: fmt.Sprintf("spec.recovery.acceptLossAfter %d was there before this loss was reported", *consent)}
	case *consent != s.Revision:
		return wait("%s. spec.recovery.acceptLossAfter is %d, which accepts another loss", said, *consent)
	case reported.Survivor != s.Member || reported.Revision != s.Revision:
		return wait("%s: status.quorumLoss reports that first", said)
	}
	leaves := slices.DeleteFunc(slices.Clone(s.Members), func(name string) bool { return name == s.Member })
	return &Action{Kind: Recover, Member: s.Member, Names: leaves, Serial: *consent, Why: said}
}

// void tells whether a consent to a revision counts no more.
func (o *Observed) void(consent int64) bool {
	return o.Kept.VoidConsent != nil && *o.Kept.VoidConsent == consent
}

// voidConsent ends a consent that is there while a leader answers: it was given for a loss that is over, or for none. Else it
// would stay armed, and members that are away for a moment would be given up for ever without a question.
func voidConsent(o *Observed) *Action {
	consent := o.Want.Consent
	if consent == nil || o.void(*consent) {
		return nil
	}
	return &Action{Kind: VoidConsent, Serial: *consent,
		Why: fmt.Sprintf("a leader answers, and spec.recovery.acceptLossAfter %d counts for no later loss", *consent)}
}

// recovery carries on with one that has begun: all members stop, the command runs on the survivor's claim, and then that
// starts alone. The others' claims are kept. If a leader answers before the command was started, nothing is recovered.
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
	if o.Cluster != nil {
		return &Action{Kind: RecoverFails, Member: r.Survivor, Why: "a leader answers again: nothing was recovered"}
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
